import { type ReactNode, useId } from 'react'

interface Props {
  label: string
  about?: ReactNode
  /** A validation message. */
  error?: string
  children: (field: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }) => ReactNode
}

/** A form field with a label, help text and error, connected for screen readers. */
export function Field({ label, about, error, children }: Props) {
  const id = useId()
  const described = [about && `${id}-about`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div>
      <label htmlFor={id} className="mb-1.5 block text-sm font-medium">
        {label}
      </label>
      {children({
        id,
        ...(described && { 'aria-describedby': described }),
        ...(error && { 'aria-invalid': true }),
      })}
      {about && (
        <p id={`${id}-about`} className="mt-1.5 text-xs text-muted">
          {about}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} className="mt-1.5 text-xs text-danger">
          {error}
        </p>
      )}
    </div>
  )
}

export const INPUT =
  'min-h-9 w-full rounded-lg border border-line-strong bg-raised px-3 text-sm placeholder:text-faint max-md:min-h-11 aria-invalid:border-danger'
