import { clsx } from 'clsx'
import { X } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from 'react'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'

interface Props {
  title: string
  onClose: () => void
  children: ReactNode
  className?: string
  /** Hide the header. The title is still announced. */
  bare?: boolean
}

/** Return true if a key was pressed in a dialog that is rendered inside the element that listens. */
export function isInDialog({ target, currentTarget }: KeyboardEvent): boolean {
  const dialog = target instanceof Element ? target.closest('dialog') : null
  return dialog !== null && currentTarget.contains(dialog)
}

/** A modal dialog. It traps focus while mounted and restores it afterwards, or focuses the page's heading if that element is gone. Escape or a click outside closes it. */
export function Dialog({ title, onClose, children, className, bare = false }: Props) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = ref.current
    const before = document.activeElement
    dialog?.showModal()
    return () => {
      dialog?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
      else document.querySelector<HTMLElement>('main h1')?.focus()
    }
  }, [])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape is the keyboard equivalent of clicking outside
    <dialog
      ref={ref}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => event.target === event.currentTarget && onClose()}
      className={clsx(
        'fixed m-auto max-h-[min(44rem,calc(100dvh-2rem))] w-[min(36rem,calc(100vw-1.5rem))] overflow-hidden rounded-2xl border border-line',
        'bg-raised p-0 text-ink shadow-raised backdrop:bg-shade',
        className,
      )}
    >
      <div className="flex max-h-[inherit] flex-col">
        <div
          className={bare ? 'sr-only' : 'flex items-center justify-between gap-4 border-b border-line py-3 pr-3 pl-5'}
        >
          <h2 id={id} className="text-base font-semibold">
            {title}
          </h2>
          {bare || (
            <IconButton label={text.common.close} onClick={onClose}>
              <X size={18} aria-hidden />
            </IconButton>
          )}
        </div>
        {children}
      </div>
    </dialog>
  )
}
