import { clsx } from 'clsx'
import { Check } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from 'react'
import { IconButton } from '@/ui/Button'

export interface Item {
  label: string
  icon?: ReactNode
  /** The keyboard shortcut, as displayed. */
  keys?: string
  danger?: boolean
  /** Set for one of several options: true for the current one. */
  checked?: boolean
  act: () => void
}

interface Props {
  label: string
  icon: ReactNode
  items: readonly Item[]
  className?: string
}

const STEPS: Record<string, (at: number, count: number) => number> = {
  ArrowDown: (at, count) => (at + 1) % count,
  ArrowUp: (at, count) => (at - 1 + count) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
}

/** A button that opens a menu. Arrow keys move the focus; Escape or a click outside closes it. */
export function Menu({ label, icon, items, className }: Props) {
  const id = useId()
  const [open, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const menu = useRef<HTMLDivElement>(null)

  const entries = () => [...(menu.current?.querySelectorAll<HTMLElement>('[role^=menuitem]') ?? [])]

  function place() {
    const [from, box] = [button.current?.getBoundingClientRect(), menu.current]
    if (!from || !box) return
    const below = from.bottom + box.offsetHeight + 8 < innerHeight
    box.style.top = `${below ? from.bottom + 4 : Math.max(8, from.top - box.offsetHeight - 4)}px`
    box.style.left = `${Math.max(8, Math.min(from.right - box.offsetWidth, innerWidth - box.offsetWidth - 8))}px`
    entries()[0]?.focus()
  }

  function walk(event: KeyboardEvent) {
    const all = entries()
    const step = STEPS[event.key]
    if (event.key === 'Tab') menu.current?.hidePopover()
    if (!step) return
    event.preventDefault()
    event.stopPropagation()
    all[step(all.indexOf(document.activeElement as HTMLElement), all.length)]?.focus()
  }

  return (
    <>
      <IconButton
        ref={button}
        label={label}
        aria-haspopup="menu"
        aria-expanded={open}
        popoverTarget={id}
        className={className}
        onClick={(event) => event.stopPropagation()}
      >
        {icon}
      </IconButton>
      <div
        ref={menu}
        id={id}
        role="menu"
        popover="auto"
        aria-label={label}
        tabIndex={-1}
        onKeyDown={walk}
        onToggle={(event) => {
          setOpen(event.newState === 'open')
          if (event.newState === 'open') place()
        }}
        className="fixed inset-auto m-0 min-w-48 rounded-xl border border-line bg-raised p-1 text-ink shadow-raised"
      >
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            {...(item.checked === undefined
              ? { role: 'menuitem' }
              : { role: 'menuitemradio', 'aria-checked': item.checked })}
            tabIndex={-1}
            onClick={() => {
              menu.current?.hidePopover()
              item.act()
            }}
            className={clsx(
              'flex min-h-9 w-full cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-left text-sm hover:bg-hover focus:bg-hover focus:outline-none max-md:min-h-11',
              item.danger && 'text-danger',
            )}
          >
            {item.icon}
            <span className="grow">{item.label}</span>
            {item.checked && <Check size={15} aria-hidden />}
            {item.keys && <Keys keys={item.keys} />}
          </button>
        ))}
      </div>
    </>
  )
}

/** A keyboard shortcut as displayed: `Ctrl+K`. */
export function Keys({ keys }: { keys: string }) {
  return (
    <kbd className="max-md:hidden rounded-md border border-line bg-sunken px-1.5 py-0.5 font-sans text-xs whitespace-nowrap text-muted">
      {keys}
    </kbd>
  )
}
