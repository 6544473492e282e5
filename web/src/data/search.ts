import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { api } from '@/api/client'
import type { Page } from '@/api/types'

export interface Hit {
  /** The message's id. */
  id: string
  conversation: string
  title: string
  role: string
  at: number
  /** Excerpt of the message. Each match is between the characters U+0002 and U+0003. */
  snippet: string
  /** The source of the snippet. */
  column: 'text' | 'tools' | 'reasoning'
}

export interface Found extends Page<Hit> {
  index: { done: number; total: number }
  /** The number of newest matches that were ranked. Null means all. */
  ranked: number | null
  /** True if a partial word matches so many words that not all of them were searched. */
  cut: boolean
  /** True if no message has all of the words. The results match some of them, sorted by relevance, on one page. */
  loose: boolean
}

/** The sort order. `meaning` sorts by semantic similarity. */
export type Order = 'newest' | 'best' | 'meaning'

/** Seconds that the server may spend indexing before it responds: short at first, longer when polling. */
const [WAIT, AGAIN] = [0.1, 1]

/**
 * Search messages; an empty query sends no request. The previous results stay while new ones load. While the index is incomplete, the
 * query is repeated.
 */
export function useSearch(query: string, order: Order) {
  const answered = useRef('')
  const found = useInfiniteQuery({
    queryKey: ['search', query, order],
    queryFn: ({ pageParam, signal }) =>
      api.get<Found>('/search', {
        query:
          order === 'meaning'
            ? { q: query, mode: order, limit: 20 }
            : { q: query, sort: order, limit: 20, cursor: pageParam, wait: answered.current === query ? AGAIN : WAIT },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    enabled: query.trim() !== '',
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    refetchInterval: (query) =>
      order !== 'meaning' && query.state.data?.pages.some(({ index }) => index.done < index.total)
        ? AGAIN * 1000
        : false,
  })
  const last = useRef(found.data)
  useEffect(() => {
    if (!found.data) return
    last.current = found.data
    if (!found.isPlaceholderData) answered.current = query
  }, [found.data, found.isPlaceholderData, query])
  const pages = (found.data ?? last.current)?.pages ?? []
  return { ...found, hits: pages.flatMap((page) => page.data), last: pages.at(-1) }
}
