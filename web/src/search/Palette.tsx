import { clsx } from 'clsx'
import { CornerDownLeft, Search } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useDeferredValue, useEffect, useId, useRef, useState } from 'react'
import { Problem } from '@/api/client'
import { type Order, useSearch } from '@/data/search'
import { useChoices } from '@/search/choices'
import { useKnown } from '@/search/known'
import { type Offer, offers, whole } from '@/search/query'
import { Dialog } from '@/ui/Dialog'
import { Keys } from '@/ui/Menu'

/**
 * One field for everything: commands, conversations by title, messages by their words. Arrows choose, Enter goes there. Whoever
 * presses Enter before the answer is there gets the first of what was typed, never of what was found for other words.
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
  const current = deferred === query.trim() && (groups[0]?.name === 'Conversations' || (answered && !found.error))

  // biome-ignore lint/correctness/useExhaustiveDependencies: another choice has to be brought into view
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [chosen])

  useEffect(() => {
    if (!entered || !(current || (answered && found.error))) return
    setEntered(false)
    if (current && choices[chosen]?.key !== 'meaning') choices[chosen]?.act() // nothing found: to ask otherwise takes another Enter
  })

  function type(text: string) {
    setQuery(text)
    setAt(null)
    setEntered(false)
    setNext(0)
  }

  function choose(to: number) {
    setAt(choices[Math.max(0, Math.min(choices.length - 1, to))]?.key ?? null)
    setEntered(false)
  }

  /** Whether the key went to another offer: the arrows are the field's own unless the caret stands behind what is typed. */
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
      title="Search and commands"
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
          aria-label="Search and commands"
          aria-expanded={choices.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={chosen >= 0 ? `${id}-${chosen}` : undefined}
          placeholder="Search messages, conversations and commands"
          autoComplete="off"
          spellCheck={false}
          value={query}
          onChange={(event) => type(event.target.value)}
          onKeyDown={onKey}
          className="h-14 min-w-0 grow bg-transparent text-base outline-none placeholder:text-faint"
        />
        <Keys keys="Esc" />
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
        <div id={`${id}-list`} role="listbox" aria-label="Results">
          {groups.map((group) => (
            <div key={group.name} role="group" aria-label={group.name}>
              <div aria-hidden className="px-2.5 pt-2 pb-1 text-xs font-medium text-faint">
                {group.name}
              </div>
              {group.choices.map((choice) => {
                index += 1
                const own = index
                return (
                  // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the field keeps the focus, Enter acts there
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
                    <div className="min-w-0 grow">{choice.words}</div>
                    {choice.keys && <Keys keys={choice.keys} />}
                  </div>
                )
              })}
            </div>
          ))}
        </div>
        <Said>{entered ? 'Searching …' : saidOf(typed, asked, found, order, count)}</Said>
      </div>
      <div className="flex items-center gap-4 border-t border-line px-4 py-2 text-xs text-faint max-md:hidden">
        <span>↑ ↓ to choose</span>
        <span className="flex items-center gap-1">
          <CornerDownLeft size={12} aria-hidden /> to go there
        </span>
        {offer && <span>{`Tab for ${offer.words}${offered.length > 1 ? ', ← → for others' : ''}`}</span>}
        <span className="ml-auto">“phrase” · -not · role: has: after:</span>
      </div>
    </Dialog>
  )
}

interface OffersProps {
  offered: readonly Offer[]
  /** The one that Tab takes. */
  next: Offer | undefined
  onChoose: (offer: Offer) => void
}

/** Ways to go on with the query, to be clicked; by keyboard the arrows go from one to the other. */
function Offers({ offered, next, onChoose }: OffersProps) {
  const row = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another offer has to be brought into view
  useEffect(() => {
    row.current?.querySelector('[aria-current=true]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [next?.words])
  if (!offered.length) return null
  return (
    <div
      ref={row}
      role="group"
      aria-label="Operators"
      className="flex shrink-0 gap-1.5 overflow-x-auto border-b border-line px-4 py-2"
    >
      {offered.map((offer) => (
        <button
          key={offer.words}
          type="button"
          tabIndex={-1}
          aria-current={offer === next}
          onClick={() => onChoose(offer)}
          className={clsx(
            'shrink-0 rounded-md px-2 py-1 font-mono text-xs text-muted hover:bg-hover max-md:min-h-11 max-md:px-3',
            offer === next ? 'bg-accent-soft' : 'bg-sunken',
          )}
        >
          {offer.words}
        </button>
      ))}
    </div>
  )
}

function Said({ children }: { children: ReactNode }) {
  return (
    <p role="status" className={clsx(children ? 'px-2.5 py-3 text-sm text-muted' : 'sr-only')}>
      {children}
    </p>
  )
}

/** What has to be said about the messages found: that none was, how far the index goes, what went wrong. */
function saidOf(
  query: string,
  asked: string,
  found: ReturnType<typeof useSearch>,
  order: Order,
  count: number,
): string {
  if (!query.trim()) return ''
  if (asked === query.trim() && found.error)
    return [found.error.message, fixOf(found.error)].filter(Boolean).join(' — ')
  if (asked !== query.trim() || found.isFetching) return count ? '' : 'Searching …'
  const { index, ranked, cut, loose } = found.last ?? {}
  const share = index && index.done < index.total ? `${Math.floor((index.done * 100) / index.total)} %` : ''
  const far = share && (order === 'meaning' ? `Read ${share} of the answers` : `Indexed ${share}`)
  if (!count) return far ? `Nothing found so far. ${far}.` : `Nothing found for “${query.trim()}”.`
  if (far) return `${far}; ${order === 'meaning' ? 'search again for the rest' : 'the rest is looked at meanwhile'}.`
  if (loose) return 'Nothing has all of these words: these have some of them, the best first.'
  if (ranked) return `Ranked among the newest ${ranked.toLocaleString('en')} matches; before: leads to older ones.`
  return cut ? 'That piece is in very many words; only the most common of them were looked for.' : ''
}

function fixOf(error: Error): string {
  return error instanceof Problem ? error.fix : ''
}

/** A value once it has stood still for so many ms. */
function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return settled
}
