/**
 * A press counts only where it began and ended on one thing. What moves things by itself therefore waits here for as long as a pointer is
 * down: a button stays under the finger, and text that is being marked stays under the mouse.
 */

const waiting = new Set<() => void>()
let pressed = false

const press = () => {
  pressed = true
}

/** The click that a release makes comes right after it, and before any timer. */
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
// a scroll bar that is let go tells nobody: the next move with no button down does
addEventListener('pointermove', ({ buttons }) => buttons === 0 && release(), SEEN)

/** Does it now, or once no pointer is down; the same function waits once. Gives what takes it back. */
export function whenReleased(act: () => void): () => void {
  if (pressed) waiting.add(act)
  else act()
  return () => waiting.delete(act)
}
