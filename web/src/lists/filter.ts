import { useEffect, useSyncExternalStore } from 'react'
import { useLocation, useSearch } from 'wouter'
import type { Filter, Shelf } from '@/data/conversations'

export const SHELVES: readonly Shelf[] = ['active', 'archived', 'deleted']
/** The parameters of addresses. Views have their own parameters with other names. */
const PARAMETERS = {
  shelf: 'list',
  project: 'in',
  agent: 'agent',
  model: 'model',
  host: 'host',
  tag: 'tag',
  from: 'from',
  to: 'to',
} as const
const NAMES = ['project', 'agent', 'model', 'host', 'tag', 'from', 'to'] as const
export const EVERYTHING: Filter = {
  shelf: 'active',
  project: '',
  agent: '',
  model: '',
  host: '',
  tag: '',
  from: '',
  to: '',
}
const DAY = /^\d{4}-\d{2}-\d{2}$/

/** Read the filter of the list of conversations from the query of an address. Unknown values are ignored. */
export function filterIn(search: string): Filter {
  const given = new URLSearchParams(search)
  const value = (name: keyof Filter) => given.get(PARAMETERS[name]) ?? ''
  const day = (name: 'from' | 'to') =>
    DAY.test(value(name)) && !Number.isNaN(Date.parse(value(name))) ? value(name) : ''
  return {
    shelf: SHELVES.find((shelf) => shelf === value('shelf')) ?? 'active',
    project: value('project'),
    agent: value('agent'),
    model: value('model'),
    host: value('host'),
    tag: value('tag'),
    from: day('from'),
    to: day('to'),
  }
}

/** Return the query of an address with this filter. Other parameters are kept. */
export function withFilter(search: string, filter: Filter): string {
  const all = new URLSearchParams(search)
  for (const name of ['shelf', ...NAMES] as const) {
    all.delete(PARAMETERS[name])
    if (filter[name] !== EVERYTHING[name]) all.set(PARAMETERS[name], filter[name])
  }
  return all.toString()
}

/** Return the number of active filters. The shelf doesn't count. */
export function countOf(filter: Filter): number {
  return NAMES.filter((name) => filter[name]).length
}

let current: Filter = filterIn(location.search)
const listeners = new Set<() => void>()

/** Change the filter of the list. */
export function setFilter(change: Partial<Filter>): void {
  current = { ...current, ...change }
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Return the filter of the list of conversations. */
export function useFilter(): Filter {
  return useSyncExternalStore(subscribe, () => current)
}

/** Keep the filter in the address of every view, so that a reload or a copied address has it. Links to views don't name it. */
export function useFilterInAddress(): void {
  const filter = useFilter()
  const search = useSearch()
  const [place, go] = useLocation()
  useEffect(() => {
    const wanted = withFilter(search, filter)
    if (wanted === new URLSearchParams(search).toString()) return
    go(`${place}${wanted ? `?${wanted}` : ''}${location.hash}`, { replace: true })
  }, [search, filter, place, go])
}
