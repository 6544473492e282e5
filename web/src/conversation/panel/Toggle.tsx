import { clsx } from 'clsx'
import type { ReactNode } from 'react'
import { Button } from '@/ui/Button'

interface Props<Choice extends string> {
  /** The accessible name of the group. */
  label: string
  choices: readonly { value: Choice; label: string; icon?: ReactNode }[]
  chosen: Choice
  choose: (value: Choice) => void
}

/** A row of buttons, one of which is pressed. */
export function Toggle<Choice extends string>({ label, choices, chosen, choose }: Props<Choice>) {
  return (
    <fieldset className="flex flex-wrap gap-1">
      <legend className="sr-only">{label}</legend>
      {choices.map(({ value, label, icon }) => (
        <Button
          key={value}
          look="quiet"
          aria-pressed={value === chosen}
          className={clsx(value === chosen && 'bg-hover text-ink!')}
          onClick={() => choose(value)}
        >
          {icon}
          {label}
        </Button>
      ))}
    </fieldset>
  )
}
