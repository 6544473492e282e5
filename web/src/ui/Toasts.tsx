import { clsx } from 'clsx'
import { X } from 'lucide-react'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { text } from '@/text'
import { Button, IconButton } from '@/ui/Button'
import { dismiss, type Toast, toasts } from '@/ui/toasts'

const STAYS = 8_000

/** The list of notifications. They are announced to screen readers, and stay visible while hovered or focused. */
export function Toasts() {
  const shown = useSyncExternalStore(toasts.subscribe, toasts.get)
  return (
    <div
      role="status"
      aria-label={text.shell.notifications}
      className="pointer-events-none fixed inset-x-3 top-[calc(3.75rem+env(safe-area-inset-top))] z-40 flex flex-col items-center gap-2"
    >
      {shown.map((toast) => (
        <One key={toast.id} toast={toast} />
      ))}
    </div>
  )
}

function One({ toast }: { toast: Toast }) {
  const [held, setHeld] = useState(false)
  useEffect(() => {
    if (held) return
    const timer = setTimeout(() => dismiss(toast.id), STAYS)
    return () => clearTimeout(timer)
  }, [held, toast.id])
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: hover and focus only keep the text visible
    <div
      onMouseEnter={() => setHeld(true)}
      onMouseLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
      className={clsx(
        'pointer-events-auto flex max-w-[min(34rem,100%)] items-center gap-2 rounded-xl border bg-raised py-1.5 pr-1.5 pl-4 text-sm shadow-raised',
        toast.danger ? 'border-danger/50 text-danger' : 'border-line text-ink',
      )}
    >
      <span className="min-w-0 break-words">{toast.text}</span>
      {toast.action && (
        <Button
          look="quiet"
          className="text-accent"
          onClick={() => {
            dismiss(toast.id)
            toast.action?.act()
          }}
        >
          {toast.action.label}
        </Button>
      )}
      <IconButton label={text.shell.dismiss} onClick={() => dismiss(toast.id)}>
        <X size={16} aria-hidden />
      </IconButton>
    </div>
  )
}
