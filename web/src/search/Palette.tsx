import { clsx } from 'clsx'
import { CornerDownLeft, Search } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useDeferredValue, useEffect, useId, useRef, useState } from 'react'
import { useSearch } from '@/data/search'
import { useChoices } from '@/search/choices'
import { Dialog } from '@/ui/Dialog'
import { Keys } from '@/ui/Menu'

/** One field for everything: commands, conversations by title, messages by their words. Arrows choose, Enter goes there. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState('')
  const [at, setAt] = useState(0)
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const asked = useSettled(query.trim(), 120)
  const found = useSearch(asked)
  const groups = useChoices(useDeferredValue(query.trim()), found.data?.data ?? [], onClose)
  const choices = groups.flatMap((group) => group.choices)
  const chosen = Math.min(at, choices.length - 1)

  // biome-ignore lint/correctness/useExhaustiveDependencies: another choice has to be brought into view
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [chosen])

  function onKey(event: KeyboardEvent) {
    const to = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + 8, PageUp: chosen - 8 }[event.key]
    if (to !== undefined) setAt(Math.max(0, Math.min(choices.length - 1, to)))
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
          onChange={(event) => {
            setQuery(event.target.value)
            setAt(0)
          }}
          onKeyDown={onKey}
          className="h-14 min-w-0 grow bg-transparent text-base outline-none placeholder:text-faint"
        />
        <Keys keys="Esc" />
      </div>
      <div
        ref={list}
        id={`${id}-list`}
        role="listbox"
        aria-label="Results"
        className="min-h-0 grow overflow-y-auto overscroll-contain p-2"
      >
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
        <Said>{saidOf(query, asked, found, choices.length)}</Said>
      </div>
      <div className="flex items-center gap-4 border-t border-line px-4 py-2 text-xs text-faint max-md:hidden">
        <span>↑ ↓ to choose</span>
        <span className="flex items-center gap-1">
          <CornerDownLeft size={12} aria-hidden /> to go there
        </span>
      </div>
    </Dialog>
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
function saidOf(query: string, asked: string, found: ReturnType<typeof useSearch>, count: number): string {
  if (!query.trim()) return ''
  if (found.error) return found.error.message
  if (asked !== query.trim() || found.isFetching) return count ? '' : 'Searching …'
  const index = found.data?.index
  const far = index && index.done < index.total ? `Indexed ${Math.floor((index.done * 100) / index.total)} %` : ''
  if (!count) return far ? `Nothing found so far. ${far}.` : `Nothing found for “${query.trim()}”.`
  return far ? `${far}; search again for the rest.` : ''
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
