import { clsx } from 'clsx'
import { CornerDownLeft, Search } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useDeferredValue, useEffect, useId, useRef, useState } from 'react'
import { Problem } from '@/api/client'
import { type Order, useSearch } from '@/data/search'
import { useChoices } from '@/search/choices'
import { type Offer, offers, whole } from '@/search/query'
import { Dialog } from '@/ui/Dialog'
import { Keys } from '@/ui/Menu'

/** One field for everything: commands, conversations by title, messages by their words. Arrows choose, Enter goes there. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState('')
  const [at, setAt] = useState(0)
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const field = useRef<HTMLInputElement>(null)
  const asked = useSettled(whole(query), 120)
  const [order, setOrder] = useState<Order>('newest')
  const found = useSearch(asked, order)
  const more = found.hasNextPage && !found.isFetching ? () => void found.fetchNextPage() : null
  const turn = (to: Order) => {
    setOrder(to)
    setAt(0)
  }
  const groups = useChoices(useDeferredValue(query.trim()), { hits: found.hits, order, turn, more }, onClose)
  const offered = offers(query)
  const choices = groups.flatMap((group) => group.choices)
  const count = choices.filter(({ key }) => key !== 'order' && key !== 'meaning').length
  const chosen = Math.min(at, choices.length - 1)

  // biome-ignore lint/correctness/useExhaustiveDependencies: another choice has to be brought into view
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [chosen])

  function type(text: string) {
    setQuery(text)
    setAt(0)
  }

  function onKey(event: KeyboardEvent) {
    const to = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + 8, PageUp: chosen - 8 }[event.key]
    if (to !== undefined) setAt(Math.max(0, Math.min(choices.length - 1, to)))
    else if (event.key === 'Tab' && !event.shiftKey && offered[0]) type(offered[0].query)
    else if (event.key === 'Enter' && !event.nativeEvent.isComposing) choices[chosen]?.act()
    else return
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
                    onMouseMove={() => setAt(own)}
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
        <Said>{saidOf(whole(query), asked, found, order, count)}</Said>
      </div>
      <div className="flex items-center gap-4 border-t border-line px-4 py-2 text-xs text-faint max-md:hidden">
        <span>↑ ↓ to choose</span>
        <span className="flex items-center gap-1">
          <CornerDownLeft size={12} aria-hidden /> to go there
        </span>
        {offered.length > 0 && <span>Tab for {offered[0]?.words}</span>}
        <span className="ml-auto">“phrase” · -not · role: has: after:</span>
      </div>
    </Dialog>
  )
}

/** Ways to go on with the query, to be clicked; by keyboard Tab takes the first. */
function Offers({ offered, onChoose }: { offered: readonly Offer[]; onChoose: (offer: Offer) => void }) {
  if (!offered.length) return null
  return (
    <div
      role="group"
      aria-label="Operators"
      className="flex shrink-0 gap-1.5 overflow-x-auto border-b border-line px-4 py-2"
    >
      {offered.map((offer) => (
        <button
          key={offer.words}
          type="button"
          tabIndex={-1}
          onClick={() => onChoose(offer)}
          className="shrink-0 rounded-md bg-sunken px-2 py-1 font-mono text-xs text-muted hover:bg-hover max-md:min-h-11 max-md:px-3"
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
  const { index, ranked, cut } = found.last ?? {}
  const share = index && index.done < index.total ? `${Math.floor((index.done * 100) / index.total)} %` : ''
  const far = share && (order === 'meaning' ? `Read ${share} of the answers` : `Indexed ${share}`)
  if (!count) return far ? `Nothing found so far. ${far}.` : `Nothing found for “${query.trim()}”.`
  if (far) return `${far}; search again for the rest.`
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
