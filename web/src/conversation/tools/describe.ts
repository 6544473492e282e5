import type { Json } from '@/api/types'

/** What a call does, in a few words. */
export interface Described {
  verb: string
  object: string
  detail: string
  /** The object is a command, a path or an address: shown as code. */
  literal: boolean
}

type Input = Record<string, Json>

const text = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
const number = (value: Json | undefined): number | null => (typeof value === 'number' ? value : null)

const KNOWN: Record<string, (input: Input) => [verb: string, object: string, detail?: string, literal?: boolean]> = {
  shell: (input) =>
    text(input.action) && input.action !== 'run'
      ? ['Shell', `${text(input.action)} ${text(input.id)}`]
      : ['Run', text(input.command).split('\n')[0] ?? '', input.background ? 'in the background' : ''],
  read_file: (input) => ['Read', text(input.path), lines(input)],
  write_file: (input) => [
    'Write',
    text(input.path),
    plural(text(input.content).replace(/\n$/, '').split('\n').length, 'line'),
  ],
  edit_file: (input) => [
    'Edit',
    text(input.path),
    Array.isArray(input.edits) ? plural(input.edits.length, 'edit') : '',
  ],
  list_files: (input) => ['List', text(input.path) || '.'],
  find_files: (input) => ['Find', text(input.pattern), inFolder(input)],
  search_files: (input) => [
    'Search for',
    text(input.pattern),
    [text(input.glob), inFolder(input)].filter(Boolean).join(' '),
  ],
  fetch_url: (input) => ['Fetch', text(input.url)],
  web_search: (input) => ['Search the web for', text(input.query), '', false],
  todo: (input) => ['Plan', Array.isArray(input.todos) ? progress(input.todos) : 'look at the list', '', false],
  ask_user: (input) => [
    'Ask',
    Array.isArray(input.questions) ? plural(input.questions.length, 'question') : '',
    '',
    false,
  ],
}

/** What a call of that tool with that input does; for a tool that is not ours its name and the first thing it was given. */
export function describe(tool: string, input: Json | undefined): Described {
  const given = input && typeof input === 'object' && !Array.isArray(input) ? input : {}
  const known = KNOWN[tool]
  if (known) {
    const [verb, object, detail = '', literal = true] = known(given)
    return { verb, object, detail, literal }
  }
  const first = Object.values(given).find((value) => typeof value === 'string' && value)
  return {
    verb: tool.replaceAll('_', ' '),
    object: typeof first === 'string' ? (first.split('\n')[0] ?? '') : '',
    detail: '',
    literal: true,
  }
}

/** Tools that only look: several in a row are folded into one line. */
export const LOOKING = new Set(['read_file', 'list_files', 'find_files', 'search_files', 'fetch_url', 'web_search'])

function lines(input: Input): string {
  const [start, count] = [number(input.start_line), number(input.line_count)]
  if (start === null && count === null) return ''
  const from = start ?? 1
  return count === null ? `from line ${from}` : `lines ${from}–${from + count - 1}`
}

function inFolder(input: Input): string {
  const path = text(input.path)
  return path && path !== '.' ? `in ${path}` : ''
}

function progress(todos: Json[]): string {
  const done = todos.filter(
    (item) => item && typeof item === 'object' && !Array.isArray(item) && stateOf(item) === 'completed',
  )
  return `${done.length} of ${plural(todos.length, 'step')} done`
}

/** The state of an item of a todo list. */
export function stateOf(item: Input): string {
  return text(item.status) || text(item.state) || 'pending'
}

export function plural(count: number, one: string): string {
  return `${count} ${count === 1 ? one : `${one}s`}`
}
