import type { DynamicToolUIPart, ToolUIPart } from 'ai'
import type { Json, Part } from '@/api/types'

/** A tool call, parsed from a message part. */
export interface Call {
  id: string
  name: string
  state: 'typing' | 'running' | 'asked' | 'done' | 'failed' | 'denied'
  over: boolean
  input: Json | undefined
  /** The arguments received so far. */
  typed: string
  output: Json | undefined
  /** True if the output is preliminary. */
  preliminary: boolean
  errorText: string
  approvalId: string
  /** Why the call was denied. */
  reason: string
  /** The hook that made the call, or an empty string. */
  hook: string
  /** The slash command whose text contains the call as a shell line, or an empty string. */
  command: string
}

export type ToolPart = ToolUIPart | DynamicToolUIPart

export function isTool(part: Part): part is ToolPart & Part {
  return part.type.startsWith('tool-') || part.type === 'dynamic-tool'
}

const STATES: Record<ToolPart['state'], Call['state']> = {
  'input-streaming': 'typing',
  'input-available': 'running',
  'approval-requested': 'asked',
  'approval-responded': 'running',
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'denied',
}

function madeBy(ours: unknown): { hook: string; command: string } {
  const { hook, command } = (ours && typeof ours === 'object' ? ours : {}) as { hook?: unknown; command?: unknown }
  return { hook: hook ? String(hook) : '', command: command ? String(command) : '' }
}

const cache = new WeakMap<object, Call>()

/** Return the call of a part, cached by the part's identity. */
export function callOf(part: ToolPart): Call {
  const known = cache.get(part)
  if (known) return known
  const approval = 'approval' in part ? part.approval : undefined
  const preliminary = 'preliminary' in part && part.preliminary === true
  const state = preliminary ? 'running' : STATES[part.state]
  const call: Call = {
    id: part.toolCallId,
    name: part.type === 'dynamic-tool' ? part.toolName : part.type.slice('tool-'.length),
    state: approval && 'approved' in approval && approval.approved === false ? 'denied' : state,
    over: state === 'done' || state === 'failed' || state === 'denied',
    input: part.input as Json | undefined,
    typed:
      'rawInput' in part && typeof part.rawInput === 'string'
        ? part.rawInput
        : JSON.stringify(part.input ?? {}, null, 2),
    output: 'output' in part ? (part.output as Json) : undefined,
    preliminary,
    errorText: 'errorText' in part ? (part.errorText ?? '') : '',
    approvalId: approval?.id ?? '',
    reason: approval && 'reason' in approval ? (approval.reason ?? '') : '',
    ...madeBy(part.toolMetadata?.moot),
  }
  cache.set(part, call)
  return call
}
