import { clsx } from 'clsx'
import type { ButtonHTMLAttributes, Ref } from 'react'

type Look = 'primary' | 'plain' | 'quiet' | 'danger'

const LOOKS: Record<Look, string> = {
  primary: 'bg-accent text-accent-ink hover:bg-accent-strong',
  plain: 'border border-line-strong/60 bg-raised text-ink hover:bg-hover',
  quiet: 'text-muted hover:bg-hover hover:text-ink',
  danger: 'border border-danger/50 bg-raised text-danger hover:bg-danger-soft',
}

const SHAPE =
  'inline-flex shrink-0 cursor-pointer items-center justify-center gap-2 rounded-lg font-medium select-none transition-colors ' +
  'disabled:cursor-not-allowed disabled:opacity-55 aria-disabled:cursor-not-allowed aria-disabled:opacity-55'

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look
  ref?: Ref<HTMLButtonElement>
}

/** A text button, at least 44 px high on phones. */
export function Button({ look = 'plain', className, type = 'button', ...more }: Props) {
  return (
    <button
      type={type}
      className={clsx(SHAPE, LOOKS[look], 'min-h-9 px-3.5 text-sm max-md:min-h-11', className)}
      {...more}
    />
  )
}

interface IconProps extends Omit<Props, 'aria-label' | 'title'> {
  /** The accessible name, also shown as a tooltip. */
  label: string
}

/** An icon button, 44 px square on phones. */
export function IconButton({ label, look = 'quiet', className, type = 'button', ...more }: IconProps) {
  return (
    <button
      type={type}
      aria-label={label}
      title={label}
      className={clsx(SHAPE, LOOKS[look], 'size-8 max-md:size-11', className)}
      {...more}
    />
  )
}
