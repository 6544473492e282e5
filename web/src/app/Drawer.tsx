import { useEffect, useRef } from 'react'
import { Sidebar } from '@/app/Sidebar'
import { text } from '@/text'
import { Toasts } from '@/ui/Toasts'

/** The sidebar as a drawer on phones, with the notifications, because nothing outside a modal dialog can be used. Escape, a tap outside or navigation closes it. */
export function Drawer({ onClose }: { onClose: () => void }) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const [dialog, before] = [ref.current, document.activeElement]
    dialog?.showModal()
    const wide = matchMedia('(min-width: 48rem)')
    wide.addEventListener('change', onClose)
    return () => {
      wide.removeEventListener('change', onClose)
      dialog?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [onClose])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape is the keyboard equivalent of tapping outside
    <dialog
      ref={ref}
      aria-label={text.shell.navigation}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => event.target === event.currentTarget && onClose()}
      className="fixed inset-y-0 left-0 m-0 h-dvh max-h-none w-[min(20rem,calc(100vw-3rem))] bg-canvas p-0 text-ink shadow-raised backdrop:bg-shade open:flex"
    >
      <Sidebar onClose={onClose} />
      <Toasts />
    </dialog>
  )
}
