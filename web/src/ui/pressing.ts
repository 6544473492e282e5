/**
 * A click counts only if it starts and ends on the same element. Layout changes therefore wait while a pointer is down, so that buttons and
 * selected text don't move under it.
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

/** Run a function now, or if a pointer is down, after it is released. Return a function that cancels it. */
export function whenReleased(act: () => void): () => void {
  if (pressed) waiting.add(act)
  else act()
  return () => waiting.delete(act)
}
