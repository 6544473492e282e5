/** Return the address of a project's files, or of a line in one of them. */
export function fileHref(project: string, path = '', line = 0): string {
  const search = new URLSearchParams({ ...(path && { path }), ...(line > 0 && { line: String(line) }) }).toString()
  return `/projects/${encodeURIComponent(project)}${search ? `?${search}` : ''}`
}

const shown = new Map<string, string>()

/** Remember the file of a project that the page shows, for commands that work on the open file. */
export function rememberFile(project: string, path: string): void {
  shown.set(project, path)
}

/** Return the file of a project that was shown last, or an empty string. */
export function lastFile(project: string): string {
  return shown.get(project) ?? ''
}

/** Return the address of a project's changes, or of the diff of a file. */
export function changesHref(project: string, path = '', staged = false): string {
  const search = new URLSearchParams({ view: 'changes', ...(path && { path }), ...(staged && { staged: 'true' }) })
  return `/projects/${encodeURIComponent(project)}?${search}`
}

/** Return the address of the diff of a project's worktree. */
export function worktreeHref(project: string, name: string): string {
  return `/projects/${encodeURIComponent(project)}?${new URLSearchParams({ view: 'worktree', path: name })}`
}

/** Return a path relative to the root, or null if it is not below it. Relative paths start at the directory. */
export function inProject(root: string, directory: string, path: string): string | null {
  const wanted = segments(path.startsWith('/') ? path : `${directory}/${path}`)
  const above = segments(root)
  const isBelow = wanted.length > above.length && above.every((name, at) => wanted[at] === name)
  return isBelow ? wanted.slice(above.length).join('/') : null
}

function segments(path: string): string[] {
  const names: string[] = []
  for (const name of path.split('/')) {
    if (name === '..') names.pop()
    else if (name && name !== '.') names.push(name)
  }
  return names
}

const NAMED: Readonly<Record<string, string>> = { dockerfile: 'docker', makefile: 'make', 'cmakelists.txt': 'cmake' }
const ENDINGS: Readonly<Record<string, string>> = {
  h: 'c',
  hpp: 'cpp',
  cc: 'cpp',
  cfg: 'ini',
  conf: 'ini',
  pyi: 'python',
  htm: 'html',
  svg: 'xml',
  mts: 'ts',
  cts: 'ts',
}

/** Return the name of the language for the highlighter. Most endings are names that it knows. */
export function languageOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  const ending = name.includes('.') ? name.slice(name.lastIndexOf('.') + 1) : ''
  return NAMED[name] ?? ENDINGS[ending] ?? ending
}

/**
 * Return an edited text with the line endings of the original. A text field has only LF. Lines at the start and end that were not changed
 * keep their own endings; others get the most common one.
 */
export function withEndings(original: string, edited: string): string {
  const before = original.split(/(?<=\n|\r(?!\n))/)
  if (!original.includes('\r')) return edited
  const after = edited.split(/(?<=\n)/)
  const plain = before.map((line) => line.replace(/\r\n?$/, '\n'))
  const most = Math.min(before.length, after.length)
  let head = 0
  while (head < most && plain[head] === after[head]) head++
  let tail = 0
  while (tail < most - head && plain.at(-1 - tail) === after.at(-1 - tail)) tail++
  const crlf = before.filter((line) => line.endsWith('\r\n')).length
  const usual = crlf * 2 >= before.filter((line) => /[\r\n]$/.test(line)).length ? '\r\n' : '\n'
  const middle = after.slice(head, after.length - tail).map((line) => line.replace(/\n$/, usual))
  return [...before.slice(0, head), ...middle, ...before.slice(before.length - tail)].join('')
}
