import { age, moment } from '@/ui/words'

/** How far an instant is, on one line; in full where a pointer rests. */
export function When({ at }: { at: number }) {
  return (
    <span title={moment(at)} className="whitespace-nowrap">
      {age(at)}
    </span>
  )
}
