import type { Message, Part } from '@/api/types'
import type { Detail } from '@/conversation/composer/attachments'
import { type Call, callOf, isTool } from '@/conversation/tools/call'
import { LOOKING } from '@/conversation/tools/describe'
import { text } from '@/text'

/** A part of a message that is rendered as a unit. */
export type Block =
  | { kind: 'text'; key: string; text: string; open: boolean }
  | { kind: 'reasoning'; key: string; text: string; open: boolean }
  | CallBlock
  | { kind: 'read-only'; key: string; calls: Call[] }
  | { kind: 'file'; key: string; url: string; mediaType: string; name: string; size: number | null }
  | { kind: 'sources'; key: string; sources: Source[] }
  | { kind: 'note'; key: string; text: string; look: 'note' | 'break' }
  | { kind: 'plan'; key: string; entries: { content: string; status: string }[] }
  | { kind: 'findings'; key: string; findings: Finding[] }
  | { kind: 'subagent'; key: string; agent: string; text: string; thought: boolean }
  | { kind: 'steer'; key: string; text: string }
  | { kind: 'questions'; key: string; approvalId: string; callId: string }

/** A page on which an answer is based. */
export interface Source {
  url: string
  title: string
}

/** A problem that a review has found. */
export interface Finding {
  path: string
  line: number
  text: string
}

/** A tool call with the blocks of the sub-agent that it started. */
export type CallBlock = { kind: 'call'; key: string; call: Call; inner: Block[] }

/** Minimum number of consecutive read-only calls that are collapsed into one line. */
const FOLDED = 3

/** Return the blocks of a message in order. */
export function blocksOf(message: Message): Block[] {
  const over = new Set(message.parts.filter(isTool).flatMap((part) => (callOf(part).over ? [part.toolCallId] : [])))
  return sourcesLast(foldedIn(nest(message.parts), over))
}

/** Put the sources of an answer below it, each page once. In the text, `[2]` refers to the second one. */
function sourcesLast(blocks: Block[]): Block[] {
  const found = blocks.flatMap((block) => (block.kind === 'sources' ? block.sources : []))
  if (!found.length) return blocks
  const byUrl = new Map<string, Source>()
  for (const { url, title } of found) byUrl.set(url, { url, title: byUrl.get(url)?.title || title })
  const sources = [...byUrl.values()]
  const cited = blocks.flatMap((block): Block[] => {
    if (block.kind === 'sources') return []
    return block.kind === 'text' ? [{ ...block, text: withCitations(block.text, sources) }] : [block]
  })
  return [...cited, { kind: 'sources', key: 'sources', sources }]
}

/** Turn references such as `[2]` outside of code into links to the sources. */
export function withCitations(markdown: string, sources: readonly Source[]): string {
  const pieces = markdown.split(/(^ {0,3}(?:```|~~~)[\s\S]*?(?:^ {0,3}(?:```|~~~)[^\n]*$|$(?![\s\S]))|`+[^`]*`+)/m)
  // entities, because an escaped bracket would begin a formula
  const linked = (number: string) => {
    const url = sources[Number(number) - 1]?.url
    return url ? `[&#91;${number}&#93;](<${url.replace(/[<>\s]/g, encodeURIComponent)}>)` : `[${number}]`
  }
  const cited = (piece: string) =>
    piece.replace(/(?<![\]\\!\w])(?:\[\d{1,2}\])+(?![(:\w[])/g, (run) =>
      run.replace(/\[(\d+)\]/g, (_, number: string) => linked(number)),
    )
  return pieces.map((piece, at) => (at % 2 ? piece : cited(piece))).join('')
}

/** Return the calls of sub-agents started by this call that wait for an approval. */
export function askedInside(block: CallBlock): Call[] {
  return block.inner.flatMap((inner) =>
    inner.kind === 'call' ? [...(inner.call.state === 'asked' ? [inner.call] : []), ...askedInside(inner)] : [],
  )
}

interface Nested {
  part: Part
  key: string
  inner: Nested[]
}

/** Return the parts as a tree: the parts of a sub-agent are below the call that started it. */
function nest(parts: readonly Part[]): Nested[] {
  const calls = new Map<string, Nested>()
  const top: Nested[] = []
  parts.forEach((part, at) => {
    const node: Nested = { part, key: `${at}`, inner: [] }
    const parent = calls.get(parentOf(part))
    ;(parent?.inner ?? top).push(node)
    if (isTool(part)) calls.set(part.toolCallId, node)
  })
  return top
}

function parentOf(part: Part): string {
  const place = isTool(part)
    ? (part.toolMetadata?.moot as unknown)
    : part.type === 'data-subagent' && (part as { data?: unknown }).data
  const parent = place && typeof place === 'object' && 'parentToolCallId' in place ? place.parentToolCallId : ''
  return typeof parent === 'string' ? parent : ''
}

function foldedIn(nodes: Nested[], over: ReadonlySet<string>): Block[] {
  const blocks: Block[] = []
  for (const node of nodes) {
    const block = blockOf(node, over)
    const last = blocks.at(-1)
    if (!block || (block.kind === 'questions' && over.has(block.callId))) continue
    if (block.kind === 'reasoning' && last?.kind === 'reasoning') {
      blocks[blocks.length - 1] = { ...last, text: `${last.text}\n\n${block.text}`, open: block.open }
    } else blocks.push(block)
  }
  return folded(blocks)
}

function blockOf({ part, key, inner }: Nested, over: ReadonlySet<string>): Block | null {
  if (isTool(part)) return { kind: 'call', key: part.toolCallId, call: callOf(part), inner: foldedIn(inner, over) }
  switch (part.type) {
    case 'text':
      return part.text ? { kind: 'text', key, text: part.text, open: part.state === 'streaming' } : null
    case 'reasoning':
      return part.text ? { kind: 'reasoning', key, text: part.text, open: part.state === 'streaming' } : null
    case 'file':
    case 'reasoning-file':
      return {
        kind: 'file',
        key,
        url: part.url,
        mediaType: part.mediaType,
        name: 'filename' in part ? (part.filename ?? '') : '',
        size: sizeOf(part),
      }
    case 'source-url':
      return { kind: 'sources', key, sources: [{ url: part.url, title: part.title ?? '' }] }
    case 'steering-message':
      return { kind: 'steer', key, text: steered(part) }
    default:
      return dataOf(part as { type: string; data?: unknown }, key)
  }
}

function dataOf(part: { type: string; data?: unknown }, key: string): Block | null {
  const data = (part.data && typeof part.data === 'object' ? part.data : {}) as Record<string, unknown>
  switch (part.type) {
    case 'data-note':
      return { kind: 'note', key, text: String(data.text ?? ''), look: 'note' }
    case 'data-transcript':
      return {
        kind: 'note',
        key,
        text: text.message.transcript(String(data.name ?? ''), String(data.text || text.message.noSpeech)),
        look: 'note',
      }
    case 'data-plan':
      return { kind: 'plan', key, entries: entriesOf(data.entries) }
    case 'data-findings':
      return { kind: 'findings', key, findings: findingsOf(data.findings) }
    case 'data-subagent':
      return data.text
        ? {
            kind: 'subagent',
            key,
            agent: String(data.agent || text.message.subagent),
            text: String(data.text),
            thought: data.kind === 'reasoning',
          }
        : null
    case 'data-attempt':
      return { kind: 'note', key, text: text.message.restarted, look: 'break' }
    case 'data-damaged':
      return { kind: 'note', key, text: text.message.damaged, look: 'note' }
    case 'data-questions':
      return {
        kind: 'questions',
        key,
        approvalId: String(data.approvalId ?? ''),
        callId: String(data.toolCallId ?? ''),
      }
    default:
      return null
  }
}

function findingsOf(items: unknown): Finding[] {
  return (Array.isArray(items) ? items : []).flatMap((item) =>
    typeof item?.path === 'string' && typeof item.line === 'number'
      ? [{ path: item.path, line: item.line, text: String(item.text ?? '') }]
      : [],
  )
}

function entriesOf(value: unknown): { content: string; status: string }[] {
  const entries = Array.isArray(value) ? (value as { content?: unknown; status?: unknown }[]) : []
  return entries.map((entry) => ({ content: String(entry?.content ?? ''), status: String(entry?.status ?? '') }))
}

function steered(part: { parts?: unknown }): string {
  const pieces = Array.isArray(part.parts) ? part.parts : []
  return pieces.map((piece: { text?: unknown }) => (typeof piece?.text === 'string' ? piece.text : '')).join('\n')
}

function folded(blocks: Block[]): Block[] {
  const out: Block[] = []
  let row: CallBlock[] = []
  const flush = () => {
    const [first] = row
    if (first && row.length >= FOLDED)
      out.push({ kind: 'read-only', key: `read-only-${first.key}`, calls: row.map(({ call }) => call) })
    else out.push(...row)
    row = []
  }
  for (const block of blocks) {
    const quiet = block.kind === 'call' && block.inner.length === 0 && block.call.over && block.call.state === 'done'
    if (quiet && LOOKING.has(block.call.name)) row.push(block)
    else {
      flush()
      out.push(block)
    }
  }
  flush()
  return out
}

/** Return the size of an attached file in bytes, or null if it is unknown. */
export function sizeOf(part: { providerMetadata?: Record<string, Record<string, unknown>> }): number | null {
  const size = part.providerMetadata?.moot?.size
  return typeof size === 'number' ? size : null
}

/** Return the text of a message. */
export function textOf(message: Message): string {
  return message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
}

/** Return the text of a prompt as the user typed it, before macros were replaced. */
export function typedText(parts: readonly Part[]): string {
  return parts
    .flatMap((part) => (part.type === 'text' ? [String(part.providerMetadata?.moot?.typed ?? part.text)] : []))
    .join('')
}

/** A file of a message. */
export type FilePart = Extract<Part, { type: 'file' }> & { detail?: Detail }

/** Return the files that the user attached, without those to which the text refers. They are attached again when it is sent again. */
export function ownFiles(parts: readonly Part[]): FilePart[] {
  return parts.flatMap((part) =>
    part.type === 'file' && part.providerMetadata?.moot?.referenced !== true ? [part] : [],
  )
}

/** Return the name of an attached file, and its lines if it has only some of them. */
export function nameOf(file: FilePart): string {
  const lines = file.providerMetadata?.moot?.lines
  const name = file.filename ?? ''
  return Array.isArray(lines) && lines.length === 2
    ? text.message.lines(name, Number(lines[0]), Number(lines[1]))
    : name
}
