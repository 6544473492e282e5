import { expect, describe as group, it } from 'vitest'
import { describe } from '@/conversation/tools/describe'

group('describe', () => {
  it.each([
    ['git__git_diff_unstaged', 'git: git diff unstaged'],
    ['mcp__git__git_log', 'git: git log'],
    ['shop__a__b', 'shop: a b'],
    ['own_tool', 'own tool'],
  ])('names the tool %s', (tool, verb) => {
    expect(describe(tool, { where: 'here' })).toEqual({ verb, object: 'here', detail: '', literal: true })
  })
})
