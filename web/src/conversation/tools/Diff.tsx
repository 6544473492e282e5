import { clsx } from 'clsx'
import { useMemo, useRef, useState } from 'react'
import { counted, type DiffLine, numbersOf } from '@/conversation/tools/diff'
import { text } from '@/text'
import { useScrollable } from '@/ui/scrollable'

const FIRST = 400

const LOOKS = {
  add: 'bg-good-soft',
  del: 'bg-danger-soft',
  same: 'text-muted',
  hunk: 'bg-sunken text-faint',
}
const SIGNS = { add: '+', del: '−', same: ' ', hunk: '' }
const SPOKEN = { add: text.tools.added, del: text.tools.removed, same: '', hunk: '' }

/** A file diff, line by line. It scrolls, unless it is `tall`. */
export function Diff({ lines, tall = false }: { lines: readonly DiffLine[]; tall?: boolean }) {
  const [all, setAll] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const region = useScrollable(box, text.tools.changes)
  const numbers = useMemo(() => numbersOf(lines), [lines])
  const width = `${String(Math.max(0, ...numbers.map((number) => number ?? 0))).length}ch`
  const isNumbered = numbers.some((number) => number !== null)
  const shown = all ? lines : lines.slice(0, FIRST)
  const starts = numbers[1] === 1 // the first line of the file: nothing is left out above it
  return (
    <div
      ref={box}
      {...region}
      dir="ltr"
      className={clsx('overflow-auto py-1 font-mono text-[0.8125rem] leading-relaxed', tall || 'max-h-128')}
    >
      <div className="w-max min-w-full">
        {shown.map((line, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no id
          <div key={at} hidden={starts && at === 0} className={clsx('flex px-3.5', LOOKS[line.kind])}>
            {isNumbered && (
              <span className="mr-3 shrink-0 text-right text-faint select-none" style={{ width }} aria-hidden>
                {numbers[at]}
              </span>
            )}
            <span className="w-5 shrink-0 select-none text-faint" aria-hidden>
              {SIGNS[line.kind]}
            </span>
            <span className="whitespace-pre">
              {SPOKEN[line.kind] && <span className="sr-only">{SPOKEN[line.kind]}</span>}
              {line.kind === 'hunk' ? line.text.replace(/^@@(?: -.*? @@ ?)?/, '') || '⋯' : line.text || ' '}
            </span>
          </div>
        ))}
      </div>
      {shown.length < lines.length && (
        <button type="button" className="px-3.5 py-2 text-accent hover:underline" onClick={() => setAll(true)}>
          {text.tools.showAllLines(lines.length)}
        </button>
      )}
    </div>
  )
}

/** The line counts next to a file name: `+3 −1`. */
export function DiffCount({ lines }: { lines: readonly DiffLine[] }) {
  const { added, removed } = counted(lines)
  return (
    <span className="shrink-0 font-mono text-xs">
      {added > 0 && <span className="text-good">+{added}</span>}{' '}
      {removed > 0 && <span className="text-danger">−{removed}</span>}
    </span>
  )
}
