import { expect, test } from 'vitest'
import { agentOf, hueOf, lettersOf } from '@/lists/agents'

test('an imported conversation has the agent of its source unless it got its own', () => {
  const origin = { format: 'claude', agent: 'claude-code' }
  expect(agentOf({ agent: 'default', origin })).toBe('claude-code')
  expect(agentOf({ agent: 'default', origin: { format: 'chatgpt' } })).toBe('chatgpt')
  expect(agentOf({ agent: 'reviewer', origin })).toBe('reviewer')
  expect(agentOf({ agent: 'default', origin: null })).toBe('default')
})

test('marks have two letters, also of names with several words or other scripts', () => {
  expect(['claude-code', 'codex', 'pi', 'x', 'ёлка', ''].map(lettersOf)).toEqual(['CC', 'Co', 'Pi', 'X', 'Ёл', '?'])
})

test('agents that begin alike have different colors', () => {
  const hues = ['codex', 'copilot-cli', 'cowork', 'claude-code', 'cline', 'cursor'].map(hueOf)
  expect(new Set(hues).size).toBe(6)
  expect(hues.every((hue) => hue >= 0 && hue < 360)).toBe(true)
})
