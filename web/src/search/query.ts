/** Split a snippet at the match markers. The server puts U+0002 and U+0003 around matches. */
export function pieces(snippet: string): { key: number; text: string; hit: boolean }[] {
  return snippet
    .replaceAll('\u0003', '\u0002')
    .split('\u0002')
    .map((text, at) => ({ key: at, text, hit: at % 2 === 1 }))
    .filter((piece) => piece.text)
}

/** Rank how well a query matches a text: 3 at the start, 2 at word starts, 1 anywhere, 0 not at all. */
export function fitness(text: string, query: string): number {
  const [low, words] = [text.toLowerCase(), query.toLowerCase().trim().split(/\s+/)]
  if (!words.every((word) => low.includes(word))) return 0
  if (low.startsWith(words[0] ?? '')) return 3
  return words.every((word) => ` ${low}`.includes(` ${word}`)) ? 2 : 1
}

const OPERATORS: Record<string, readonly string[]> = {
  role: ['user', 'assistant', 'system'],
  in: ['text', 'tools', 'reasoning'],
  has: ['image', 'file', 'code', 'tool', 'reasoning', 'error'],
  after: ['today', 'yesterday', '7d', '1m'],
  before: ['today', 'yesterday', '7d', '1m'],
  agent: [],
  model: [],
  project: [],
  cost: ['>0.10', '>1'],
  status: ['finished', 'failed', 'cancelled'],
}

/** A suggested completion of the query. */
export interface Offer {
  label: string
  query: string
}

/** Maximum number of values offered at once. */
const OFFERED = 12

/**
 * Return completions of the last word: operators, or values of an operator. After a complete word, return all operators. `known` holds
 * the values that depend on the server.
 */
export function offers(query: string, known: Record<string, readonly string[]> = {}): Offer[] {
  const half = /^(.*?)(-?)([a-z]*)(?::([^\s"]*))?$/is.exec(query.slice(query.lastIndexOf(' ') + 1))
  if (!query.trim() || !half || half[1]) return []
  const [, , minus = '', name = '', value] = half
  const before = query.slice(0, query.lastIndexOf(' ') + 1)
  if (value === undefined) {
    const fitting = Object.keys(OPERATORS).filter((operator) => operator.startsWith(name.toLowerCase()))
    return fitting.map((operator) => ({ label: `${minus}${operator}:`, query: `${before}${minus}${operator}:` }))
  }
  const operator = name.toLowerCase()
  const low = value.toLowerCase()
  const values = (known[operator] ?? OPERATORS[operator] ?? []).filter((one) => one.toLowerCase() !== low)
  const prefixed = values.filter((one) => one.toLowerCase().startsWith(low))
  const within = values.filter((one) => !prefixed.includes(one) && one.toLowerCase().includes(low))
  return [...prefixed, ...within].slice(0, OFFERED).map((one) => {
    const label = `${minus}${name}:${/[\s"]/.test(one) ? `"${one.replaceAll('"', '')}"` : one}`
    return { label, query: `${before}${label} ` }
  })
}

/** Return the query without a trailing operator that has no value yet. */
export function whole(query: string): string {
  const half = /(?:^|\s)-?([a-z]+):$/i.exec(query)
  return (half && (half[1] ?? '').toLowerCase() in OPERATORS ? query.slice(0, half.index) : query).trim()
}

/** Return true if every word of the query is a word of this command's name. */
export function isNamed(command: string, query: string): boolean {
  const words = (value: string) =>
    value
      .toLowerCase()
      .split(/[^\p{L}\p{N}]+/u)
      .filter(Boolean)
  const own = new Set(words(command))
  const asked = words(query)
  return asked.length > 0 && asked.every((word) => own.has(word))
}
