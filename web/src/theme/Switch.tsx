import { clsx } from 'clsx'
import { Contrast, type LucideIcon, Monitor, Moon, Sun } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { text } from '@/text'
import { choose, chosen, subscribe, type Theme } from '@/theme/choice'

const CHOICES: readonly [Theme, LucideIcon][] = [
  ['system', Monitor],
  ['light', Sun],
  ['dark', Moon],
  ['contrast', Contrast],
]

/** The theme switch. */
export function ThemeSwitch({ className }: { className?: string }) {
  const theme = useSyncExternalStore(subscribe, chosen)
  return (
    <fieldset className={clsx('flex rounded-lg bg-hover/70 p-0.5', className)}>
      <legend className="sr-only">{text.theme.title}</legend>
      {CHOICES.map(([value, Icon]) => (
        <label
          key={value}
          title={text.theme.names[value]}
          className={clsx(
            'grid h-7 flex-1 cursor-pointer place-items-center rounded-md text-muted has-focus-visible:outline-2 has-focus-visible:outline-focus max-md:h-11',
            theme === value ? 'bg-raised text-ink shadow-sm' : 'hover:text-ink',
          )}
        >
          <input
            type="radio"
            name="theme"
            aria-label={text.theme.names[value]}
            className="sr-only"
            checked={theme === value}
            onChange={() => choose(value)}
          />
          <Icon size={15} aria-hidden />
        </label>
      ))}
    </fieldset>
  )
}
