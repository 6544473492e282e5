/** A line of a unified diff. */
export interface DiffLine {
  kind: 'add' | 'del' | 'same' | 'hunk'
  text: string
}

/** Parse a unified diff without its file names. */
export function diffLines(diff: string): DiffLine[] {
  const lines: DiffLine[] = []
  for (const line of diff.replace(/\n$/, '').split('\n')) {
    if (/^(---|\+\+\+) /.test(line) && !lines.length) continue
    if (line.startsWith('@@')) lines.push({ kind: 'hunk', text: line })
    else if (line.startsWith('+')) lines.push({ kind: 'add', text: line.slice(1) })
    else if (line.startsWith('-')) lines.push({ kind: 'del', text: line.slice(1) })
    else if (line.startsWith('\\'))
      lines.push({ kind: 'hunk', text: line.slice(2) }) // "No newline at end of file"
    else lines.push({ kind: 'same', text: line.slice(1) })
  }
  return lines
}

/** Return the lines of a file's diff without its head. A diff without hunks, such as that of a binary file, is only its head. */
export function hunksOf(diff: string): DiffLine[] {
  const start = diff.search(/^@@/m)
  return diff ? diffLines(start < 0 ? diff.replace(/\n$/, '').replace(/^/gm, ' ') : diff.slice(start)) : []
}

/** Split the output of `git diff` into files. */
export function filesOf(diff: string): { path: string; lines: DiffLine[] }[] {
  return diff
    .split(/^(?=diff --git )/m)
    .filter(Boolean)
    .map((file) => {
      const [head = ''] = file.split(/^@@/m, 1)
      const paths = [/^\+\+\+ (?:b\/)?(.+)$/m, /^--- (?:a\/)?(.+)$/m, /^rename to (.+)$/m, /^diff --git .* b\/(.+)$/m]
      const names = paths.map((path) => path.exec(head)?.[1]?.trimEnd())
      return { path: names.find((name) => name && name !== '/dev/null') ?? '', lines: hunksOf(file) }
    })
}

/** Return the line number of each line: in the new file, or in the old one for a removed line. Null if the diff doesn't say it. */
export function numbersOf(lines: readonly DiffLine[]): (number | null)[] {
  let [before, after] = [0, 0]
  return lines.map(({ kind, text }) => {
    const starts = kind === 'hunk' ? /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(text) : null
    if (starts) [before, after] = [Number(starts[1]), Number(starts[2])]
    else if (kind === 'hunk' && text.startsWith('@@')) [before, after] = [0, 0]
    if (kind === 'hunk' || before + after === 0) return null
    const number = kind === 'del' ? before : after
    if (kind !== 'add') before += 1
    if (kind !== 'del') after += 1
    return number
  })
}

/** Count added and removed lines. */
export function counted(lines: readonly DiffLine[]): { added: number; removed: number } {
  const of = (kind: DiffLine['kind']) => lines.filter((line) => line.kind === kind).length
  return { added: of('add'), removed: of('del') }
}

/** Return the change proposed by `edit_file` or `write_file`, before the tool returns its diff. */
export function proposed(tool: string, input: Record<string, unknown>): DiffLine[] {
  if (tool === 'write_file') return split(input.content).map((text) => ({ kind: 'add', text }))
  const edits = Array.isArray(input.edits) ? (input.edits as Record<string, unknown>[]) : []
  return edits.flatMap((edit) => [
    { kind: 'hunk' as const, text: '@@' },
    ...split(edit?.old_text).map((text) => ({ kind: 'del' as const, text })),
    ...split(edit?.new_text).map((text) => ({ kind: 'add' as const, text })),
  ])
}

function split(value: unknown): string[] {
  return typeof value === 'string' && value ? value.replace(/\n$/, '').split('\n') : []
}
