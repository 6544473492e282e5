import { expect, test } from 'vitest'
import type { Part } from '@/api/types'
import { noticeOf, waitOf } from '@/conversation/messages/progress'

const STEP = { type: 'step-start' } as Part
const call = (state: string) => ({ type: 'tool-shell', toolCallId: 'a', state, input: {} }) as Part

test.each([
  [[], noticeOf({ status: 'queued' }), 'Waiting for another run to finish'],
  [[STEP], noticeOf({ status: 'queued' }), 'Waiting for the model'],
  [[STEP], noticeOf({ status: 'retrying', reason: 'overloaded', until: 9_000 }), 'The provider is overloaded'],
  [[STEP], noticeOf({ status: 'retrying', reason: 'overloaded', until: 1_000 }), 'Waiting for the model'],
  [[STEP, call('input-available')], null, 'Running a command'],
  [[STEP, call('output-available')], null, 'Waiting for the model'],
  [[{ type: 'data-note', data: { text: 'x', until: 9_000 } } as Part], null, 'Usage limit reached'],
  [[STEP, call('approval-requested')], null, undefined],
  [[STEP, { type: 'text', text: 'x', state: 'streaming' } as Part], null, undefined],
])('a response with %j and the notice %j waits for: %s', (parts, notice, label) => {
  expect(waitOf(parts, notice, 5_000)?.label).toBe(label)
})
