import { age, moment } from '@/ui/format'

/** A relative time, with the full timestamp as a tooltip. */
export function When({ at }: { at: number }) {
  return (
    <span title={moment(at)} className="whitespace-nowrap">
      {age(at)}
    </span>
  )
}
