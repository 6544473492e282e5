import { missedRequests } from '@/api/online'

const LONGEST = 60_000

/**
 * Return the ms until a request is repeated: `base`, and twice as long after each request that did not reach the server. Nothing is
 * repeated while the page is hidden.
 */
export function pause(base: number): number {
  return Math.min(LONGEST, base * 2 ** Math.min(missedRequests(), 6))
}
