import { clsx } from 'clsx'
import { CornerDownLeft, Search } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useDeferredValue, useEffect, useId, useRef, useState } from 'react'
import { Problem } from '@/api/client'
import { type Order, useSearch } from '@/data/search'
import { NAMED, useChoices } from '@/search/choices'
import { useKnown } from '@/search/known'
import { type Offer, offers, whole } from '@/search/query'
import { text } from '@/text'
import { Dialog } from '@/ui/Dialog'
import { Keys } from '@/ui/Menu'

/**
 * Search for commands, conversation titles and messages. Arrow keys select, Enter opens. Enter before the results arrive opens the first
 * result for the current query, never an outdated one.
 */
export function Palette({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState('')
  const [at, setAt] = useState<string | null>(null)
  const [entered, setEntered] = useState(false)
  const [next, setNext] = useState(0)
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const field = useRef<HTMLInputElement>(null)
  const typed = whole(query)
  const asked = useSettled(typed, entered ? 0 : 120)
  const [order, setOrder] = useState<Order>('newest')
  const found = useSearch(asked, order)
  const more = found.hasNextPage && !found.isFetching ? () => void found.fetchNextPage() : null
  const turn = (to: Order) => {
    setOrder(to)
    setAt(null)
  }
  const deferred = useDeferredValue(query.trim())
  const loose = found.last?.loose ?? false
  const groups = useChoices(deferred, { hits: found.hits, order, loose, turn, more }, onClose)
  const offered = offers(query, useKnown(query))
  const offer = offered[Math.min(next, offered.length - 1)]
  const choices = groups.flatMap((group) => group.choices)
  const count = choices.filter(({ key }) => key !== 'order' && key !== 'meaning').length
  const chosen = Math.max(
    Math.min(0, choices.length - 1),
    choices.findIndex((choice) => choice.key === at),
  )
  const answered = typed === '' || (asked === typed && !found.isPlaceholderData && !found.isPending)
  const current =
    deferred === query.trim() &&
    ([NAMED, text.search.conversations].includes(groups[0]?.name ?? '') || (answered && !found.error))

  // biome-ignore lint/correctness/useExhaustiveDependencies: scroll the selected choice into view
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [chosen])

  useEffect(() => {
    if (!entered || !(current || (answered && found.error))) return
    setEntered(false)
    if (current && choices[chosen]?.key !== 'meaning') choices[chosen]?.act() // without results, don't run another search automatically
  })

  function type(value: string) {
    setQuery(value)
    setAt(null)
    setEntered(false)
    setNext(0)
  }

  function choose(to: number) {
    setAt(choices[Math.max(0, Math.min(choices.length - 1, to))]?.key ?? null)
    setEntered(false)
  }

  /** Select another suggestion if the caret is at the end of the query; otherwise the arrow keys move the caret. */
  function wander(key: string) {
    const { selectionStart, value } = field.current ?? {}
    if (selectionStart !== value?.length || !(key === 'ArrowRight' ? next < offered.length - 1 : next > 0)) return false
    setNext(next + (key === 'ArrowRight' ? 1 : -1))
    return true
  }

  function onKey(event: KeyboardEvent) {
    const { key } = event
    const to = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + 8, PageUp: chosen - 8 }[key]
    if (to !== undefined) choose(to)
    else if (key === 'Tab' && !event.shiftKey && offer) type(offer.query)
    else if (key === 'Enter' && !event.nativeEvent.isComposing) {
      if (at !== null || current) choices[chosen]?.act()
      else setEntered(true)
    } else if (!(key === 'ArrowRight' || key === 'ArrowLeft') || event.shiftKey || !wander(key)) return
    event.preventDefault()
  }

  let index = -1
  return (
    <Dialog
      title={text.search.title}
      onClose={onClose}
      bare
      className="mt-[max(1rem,12vh)] mb-auto w-[min(42rem,calc(100vw-1.5rem))]"
    >
      <div className="flex items-center gap-3 border-b border-line px-4">
        <Search size={18} aria-hidden className="shrink-0 text-muted" />
        <input
          ref={field}
          autoFocus
          role="combobox"
          aria-label={text.search.title}
          aria-expanded={choices.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={chosen >= 0 ? `${id}-${chosen}` : undefined}
          placeholder={text.search.placeholder}
          autoComplete="off"
          spellCheck={false}
          value={query}
          onChange={(event) => type(event.target.value)}
          onKeyDown={onKey}
          className="h-14 min-w-0 grow bg-transparent text-base outline-none placeholder:text-faint"
        />
        <Keys keys={text.keys.names.escape} />
      </div>
      <Offers
        offered={offered}
        next={offer}
        onChoose={(offer) => {
          type(offer.query)
          field.current?.focus()
        }}
      />
      <div ref={list} className="min-h-0 grow overflow-y-auto overscroll-contain p-2">
        <div id={`${id}-list`} role="listbox" aria-label={text.search.results}>
          {groups.map((group) => (
            <div key={group.name} role="group" aria-label={group.name}>
              <div aria-hidden className="px-2.5 pt-2 pb-1 text-xs font-medium text-faint">
                {group.name}
              </div>
              {group.choices.map((choice) => {
                index += 1
                const own = index
                return (
                  // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the input keeps the focus and handles Enter
                  <div
                    key={choice.key}
                    id={`${id}-${own}`}
                    role="option"
                    aria-selected={own === chosen}
                    onMouseMove={() => setAt(choice.key)}
                    onClick={choice.act}
                    className={clsx(
                      'flex min-h-10 cursor-pointer items-center gap-3 rounded-lg px-2.5 py-1.5 max-md:min-h-11',
                      own === chosen && 'bg-accent-soft',
                    )}
                  >
                    {choice.icon}
                    <div className="min-w-0 grow">{choice.label}</div>
                    {choice.keys && <Keys keys={choice.keys} />}
                  </div>
                )
              })}
            </div>
          ))}
        </div>
        <Status>{entered ? text.search.searching : statusOf(typed, asked, found, order, count)}</Status>
      </div>
      <div className="flex items-center gap-4 border-t border-line px-4 py-2 text-xs text-faint max-md:hidden">
        <span>{text.search.hintSelect}</span>
        <span className="flex items-center gap-1">
          <CornerDownLeft size={12} aria-hidden /> {text.search.hintOpen}
        </span>
        {offer && <span>{text.search.hintTab(offer.label, offered.length > 1)}</span>}
        <span className="ml-auto">{text.search.hintSyntax}</span>
      </div>
    </Dialog>
  )
}

interface OffersProps {
  offered: readonly Offer[]
  /** The suggestion that Tab inserts. */
  next: Offer | undefined
  onChoose: (offer: Offer) => void
}

/** Clickable completions of the query. */
function Offers({ offered, next, onChoose }: OffersProps) {
  const row = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: scroll the selected suggestion into view
  useEffect(() => {
    row.current?.querySelector('[aria-current=true]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [next?.label])
  if (!offered.length) return null
  return (
    <div
      ref={row}
      role="group"
      aria-label={text.search.operators}
      className="flex shrink-0 gap-1.5 overflow-x-auto border-b border-line px-4 py-2"
    >
      {offered.map((offer) => (
        <button
          key={offer.label}
          type="button"
          tabIndex={-1}
          aria-current={offer === next}
          onClick={() => onChoose(offer)}
          className={clsx(
            'shrink-0 rounded-md px-2 py-1 font-mono text-xs text-muted hover:bg-hover max-md:min-h-11 max-md:px-3',
            offer === next ? 'bg-accent-soft' : 'bg-sunken',
          )}
        >
          {offer.label}
        </button>
      ))}
    </div>
  )
}

function Status({ children }: { children: ReactNode }) {
  return (
    <p role="status" className={clsx(children ? 'px-2.5 py-3 text-sm text-muted' : 'sr-only')}>
      {children}
    </p>
  )
}

/** Return the status text: no results, indexing progress or an error. */
function statusOf(
  query: string,
  asked: string,
  found: ReturnType<typeof useSearch>,
  order: Order,
  count: number,
): string {
  if (!query.trim()) return ''
  if (asked === query.trim() && found.error) return [found.error.message, fixOf(found.error)].filter(Boolean).join(' ')
  if (asked !== query.trim() || found.isFetching) return count ? '' : text.search.searching
  const { index, ranked, cut, loose } = found.last ?? {}
  const share = index && index.done < index.total ? Math.floor((index.done * 100) / index.total) : null
  const far = share === null ? '' : order === 'meaning' ? text.search.searched(share) : text.search.indexed(share)
  if (!count) return far ? text.search.nothingYet(far) : text.search.nothing(query.trim())
  if (far) return order === 'meaning' ? text.search.searchAgain(far) : text.search.updates(far)
  if (loose) return text.search.partial
  if (ranked) return text.search.ranked(ranked)
  return cut ? text.search.cut : ''
}

function fixOf(error: Error): string {
  const fix = error instanceof Problem ? error.fix : ''
  return fix.startsWith('moot ') ? text.search.run(fix) : fix
}

/** Return the value after it has been unchanged for the given ms. */
function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return settled
}
