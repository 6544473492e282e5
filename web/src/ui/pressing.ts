/**
 * A press counts only where it began and ended on one thing. What moves things by itself therefore waits here for as long as a pointer is
 * down: a button stays under the finger, and text that is being marked stays under the mouse.
 */

const waiting = new Set<() => void>()
let pressed = false

const press = () => {
  pressed = true
}

/** A click event follows pointerup immediately, before any timer. */
const release = () => {
  if (!pressed) return
  pressed = false
  setTimeout(() => {
    for (const act of [...waiting]) {
      if (pressed) return
      waiting.delete(act)
      act()
    }
  })
}

const SEEN = { capture: true, passive: true }
addEventListener('pointerdown', press, SEEN)
addEventListener('pointerup', release, SEEN)
addEventListener('pointercancel', release, SEEN)
addEventListener('blur', release)
// releasing a scroll bar fires no pointerup: detect it on the next move without a pressed button
addEventListener('pointermove', ({ buttons }) => buttons === 0 && release(), SEEN)

/** Run a function now, or after the pointer is released. Return a function that cancels it. */
export function whenReleased(act: () => void): () => void {
  if (pressed) waiting.add(act)
  else act()
  return () => waiting.delete(act)
}
