import type { Conversation } from '@/api/types'
import { text } from '@/text'

/** Return the agent by which the list can be filtered: its own unless that is `default`, or else what it was imported from. */
export function agentOf({ agent, origin }: Pick<Conversation, 'agent' | 'origin'>): string {
  return agent === 'default' ? String(origin?.agent || origin?.program || origin?.format || agent) : agent
}

/** Return the name to show for an agent. */
export function agentName(agent: string): string {
  return agent === 'default' ? text.common.app : agent
}

/** Return two letters for an agent's mark: the initials of a name with several words, or the first letters of one. */
export function lettersOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean)
  const letters = words.length > 1 ? words.map((word) => [...word][0]).slice(0, 2) : [...(words[0] ?? '?')].slice(0, 2)
  const [first = '', second = ''] = letters
  return first.toUpperCase() + (words.length > 1 ? second.toUpperCase() : second.toLowerCase())
}

/** Return the hue of an agent's mark in degrees. Names that begin alike get different hues. */
export function hueOf(name: string): number {
  let hash = 7
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 100_003
  return (hash * 137) % 360
}
