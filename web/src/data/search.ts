import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { api } from '@/api/client'
import type { Page } from '@/api/types'

export interface Hit {
  /** Of the message. */
  id: string
  conversation: string
  title: string
  role: string
  at: number
  /** With U+0002 and U+0003 around what matched. */
  snippet: string
  /** Where the snippet is from. */
  column: 'text' | 'tools' | 'reasoning'
}

export interface Found extends Page<Hit> {
  index: { done: number; total: number }
  /** So many of the matches were ranked, the newest ones; null: all. */
  ranked: number | null
  /** A piece of a word is in too many words to look for all of them. */
  cut: boolean
  /** Nothing has all of the words; these have some of them, the best first, on one page. */
  loose: boolean
}

/** What comes first; `meaning`: what lies nearest to what is meant, whatever its words. */
export type Order = 'newest' | 'best' | 'meaning'

/** Seconds that the server may index before it answers: what is typed is to be answered at once, and is then asked again. */
const [WAIT, AGAIN] = [0.1, 1]

/**
 * Messages that fit a query; nothing is asked for an empty one. While an answer is awaited, or a query is half typed, the last hits
 * stay. While the index is behind, the query is asked again until the answer is whole.
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
