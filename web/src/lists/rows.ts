import type { Conversation, Relative } from '@/api/types'
import type { ListChoices } from '@/data/conversations'
import { text } from '@/text'
import { dayOf } from '@/ui/format'

export type Row =
  | { kind: 'day' | 'project'; key: string; text: string }
  | { kind: 'one'; key: string; conversation: Conversation; inside?: boolean }
  | { kind: 'fold'; key: string; count: number; open: boolean }
  | { kind: 'calls'; key: string; count: number; latest: number | null; open: boolean }
  | { kind: 'more'; key: string }
  | { kind: 'child'; key: string; relative: Relative; depth: number }

/**
 * Group conversations into rows with headings, newest first: pinned ones, then the others by project if there are several, otherwise by
 * day.
 */
export function rowsOf(
  all: readonly Conversation[],
  names: ReadonlyMap<string, string> = new Map(),
  now: number = Date.now(),
): Row[] {
  const pinned = all.filter(({ pinned_at }) => pinned_at)
  if (pinned.length) {
    const others = rowsOf(
      all.filter(({ pinned_at }) => !pinned_at),
      names,
      now,
    )
    const rows = pinned.map((conversation) => ({ kind: 'one' as const, key: conversation.id, conversation }))
    return [{ kind: 'day', key: 'pinned', text: text.list.pinnedHeading }, ...rows, ...others]
  }
  const projects = new Map<string, Conversation[]>()
  for (const conversation of all) {
    const own = projects.get(conversation.project)
    if (own) own.push(conversation)
    else projects.set(conversation.project, [conversation])
  }
  if (projects.size < 2) return daysOf(all, now)
  return [...projects].flatMap(([id, own]) => [
    { kind: 'project' as const, key: `project ${id}`, text: names.get(id) ?? id },
    ...own.map((conversation) => ({ kind: 'one' as const, key: conversation.id, conversation })),
  ])
}

function daysOf(conversations: readonly Conversation[], now: number): Row[] {
  const rows: Row[] = []
  let day = ''
  for (const conversation of conversations) {
    const text = dayOf(conversation.updated_at, now)
    if (text !== day) rows.push({ kind: 'day', key: `day ${text}`, text })
    day = text
    rows.push({ kind: 'one', key: conversation.id, conversation })
  }
  return rows
}

/** Add a line below the conversation that shows or hides its sub-agents. If it is `open`, also add rows for the sub-agents. */
export function withChildren(
  rows: readonly Row[],
  conversation: string,
  below: readonly Relative[],
  open: boolean,
): Row[] {
  const children = flat(below, 1)
  if (!children.length) return [...rows]
  return rows.flatMap((row) =>
    row.key === conversation && row.kind === 'one'
      ? [
          row,
          { kind: 'fold' as const, key: `fold ${row.key}`, count: children.length, open },
          ...(open ? children : []),
        ]
      : [row],
  )
}

function flat(below: readonly Relative[], depth: number): Extract<Row, { kind: 'child' }>[] {
  return below.flatMap((relative) => [
    { kind: 'child' as const, key: relative.id, relative, depth },
    ...flat(relative.children, depth + 1),
  ])
}

/**
 * Add an entry at the top for the conversations that programs created by calling `/v1`. If it is `open`, also add the loaded ones, and a
 * button for more.
 */
export function withCalls(
  rows: readonly Row[],
  { calls, latest_call: latest }: Pick<ListChoices, 'calls' | 'latest_call'>,
  loaded: readonly Conversation[] | null,
  more: boolean,
): Row[] {
  if (!calls) return [...rows]
  return [
    { kind: 'calls', key: 'calls', count: calls, latest, open: loaded !== null },
    ...(loaded ?? []).map((conversation) => ({
      kind: 'one' as const,
      key: conversation.id,
      conversation,
      inside: true,
    })),
    ...(more ? [{ kind: 'more' as const, key: 'more calls' }] : []),
    ...rows,
  ]
}

/** Return a conversation's title, or `Untitled`. */
export function titleOf(conversation: Pick<Conversation, 'title'>): string {
  return conversation.title || text.common.untitled
}

/**
 * Return the import source, such as `from claude-code on laptop`: the program, type of agent or format, and the machine if it is another
 * one. Empty for conversations that weren't imported.
 */
export function originOf({ origin, host }: Pick<Conversation, 'origin' | 'host'>): string {
  const source = origin?.program || origin?.agent_type || origin?.format
  return source ? text.list.from(String(source), host) : ''
}
