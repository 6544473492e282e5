import type { Json } from '@/api/types'
import { text } from '@/text'

/** A short description of a tool call. */
export interface Described {
  verb: string
  object: string
  detail: string
  /** True if the object is a command, path or URL, which is shown as code. */
  literal: boolean
}

type Input = Record<string, Json>

const asText = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
const number = (value: Json | undefined): number | null => (typeof value === 'number' ? value : null)

const KNOWN: Record<string, (input: Input) => [verb: string, object: string, detail?: string, literal?: boolean]> = {
  shell: (input) =>
    asText(input.action) && input.action !== 'run'
      ? [text.tools.shell, `${asText(input.action)} ${asText(input.id)}`]
      : [text.tools.run, asText(input.command).split('\n')[0] ?? '', input.background ? text.tools.background : ''],
  read_file: (input) => [text.tools.read, asText(input.path), lines(input)],
  write_file: (input) => [
    text.tools.write,
    asText(input.path),
    text.tools.lines(asText(input.content).replace(/\n$/, '').split('\n').length),
  ],
  edit_file: (input) => [
    text.tools.edit,
    asText(input.path),
    Array.isArray(input.edits) ? text.tools.edits(input.edits.length) : '',
  ],
  list_files: (input) => [text.tools.list, asText(input.path) || '.'],
  find_files: (input) => [text.tools.find, asText(input.pattern), inFolder(input)],
  search_files: (input) => [
    text.tools.search,
    asText(input.pattern),
    [asText(input.glob), inFolder(input)].filter(Boolean).join(' '),
  ],
  fetch_url: (input) => [text.tools.fetch, asText(input.url)],
  web_search: (input) => [text.tools.webSearch, asText(input.query), '', false],
  todo: (input) => [
    text.tools.plan,
    Array.isArray(input.todos) ? progress(input.todos) : text.tools.todoList,
    '',
    false,
  ],
  delegate: (input) => [
    text.tools.delegate,
    [asText(input.agent), asText(input.prompt).split('\n')[0]].filter(Boolean).join(': '),
    Array.isArray(input.more) && input.more.length ? text.tools.agents(input.more.length + 1) : '',
    false,
  ],
  exit_plan: (input) => [
    text.tools.plan,
    asText(input.plan)
      .split('\n')[0]
      ?.replace(/^[# ]*(plan\b:? *)?/i, '') ?? '',
    '',
    false,
  ],
  ask_user: (input) => [
    text.tools.ask,
    Array.isArray(input.questions) ? text.tools.questions(input.questions.length) : '',
    '',
    false,
  ],
}

/** Describe a tool call. For unknown tools: the name and the first text argument. */
export function describe(tool: string, input: Json | undefined): Described {
  const given = input && typeof input === 'object' && !Array.isArray(input) ? input : {}
  const known = KNOWN[tool]
  if (known) {
    const [verb, object, detail = '', literal = true] = known(given)
    return { verb, object, detail, literal }
  }
  const first = Object.values(given).find((value) => typeof value === 'string' && value)
  return {
    verb: words(tool),
    object: typeof first === 'string' ? (first.split('\n')[0] ?? '') : '',
    detail: '',
    literal: true,
  }
}

/** Return a tool's name as words. A tool of an MCP server comes after the server's name: `git: git log`. */
function words(tool: string): string {
  const [server = '', ...rest] = tool.replace(/^mcp__/, '').split('__')
  return rest.length > 0 ? `${server}: ${rest.join('_').replaceAll('_', ' ')}` : tool.replaceAll('_', ' ')
}

/** Read-only tools. Consecutive calls are collapsed into one line. */
export const LOOKING = new Set(['read_file', 'list_files', 'find_files', 'search_files', 'fetch_url', 'web_search'])

function lines(input: Input): string {
  const [start, count] = [number(input.start_line), number(input.line_count)]
  if (start === null && count === null) return ''
  const from = start ?? 1
  return count === null ? text.tools.fromLine(from) : text.tools.lineRange(from, from + count - 1)
}

function inFolder(input: Input): string {
  const path = asText(input.path)
  return path && path !== '.' ? text.tools.inFolder(path) : ''
}

function progress(todos: Json[]): string {
  const done = todos.filter(
    (item) => item && typeof item === 'object' && !Array.isArray(item) && stateOf(item) === 'completed',
  )
  return text.tools.progress(done.length, todos.length)
}

/** Return the state of a todo item. */
export function stateOf(item: Input): string {
  return asText(item.status) || asText(item.state) || 'pending'
}
