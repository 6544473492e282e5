import { QueryClient } from '@tanstack/react-query'
import { expect, test } from 'vitest'
import { namedCandidates } from '@/conversation/composer/candidates'

/** Complete a word after `@` with the given data of the server. */
async function completed(word: string, data: Record<string, unknown>): Promise<string[]> {
  const client = new QueryClient()
  for (const [key, value] of Object.entries(data)) client.setQueryData(key.split(' '), value)
  const found = await namedCandidates(word, client)
  return found.map(({ text, quoted, whole }) => (quoted ?? text) + (whole ? '.' : ''))
}

test('macros are completed after a brace', async () => {
  const config = { config: { macros: { tone: 'Be kind.', style: 'Be brief.' } } }
  expect(await completed('{', { config })).toEqual(['{tone}.', '{style}.'])
  expect(await completed('{to', { config })).toEqual(['{tone}.'])
  expect(await completed('{to', { config: { config: {} } })).toEqual([])
})

test('tools that can be called are completed after a bracket', async () => {
  const tool = { description: '', available: true, hidden: false }
  const data = [
    { ...tool, name: 'read_file' },
    { ...tool, name: 'read_mail', available: false },
    { ...tool, name: 'shell' },
  ]
  expect(await completed('[read', { tools: { data } })).toEqual(['[read_file{'])
  expect(await completed('[read_file{', { tools: { data } })).toEqual([])
  expect(await completed('[id]/page.tsx', { tools: { data } })).toEqual([])
})

test('resources are completed after the name of an enabled server', async () => {
  const mcp = { data: [{ name: 'db', enabled: true }] }
  const resources = {
    data: [
      { uri: 'schema://main', name: 'Tables', is_template: false },
      { uri: 'note://two words', name: 'Words', is_template: false },
      { uri: 'note://person/{name}', name: 'People', is_template: true },
    ],
  }
  const data = { mcp, 'mcp db resources': resources }
  expect(await completed('db:', data)).toEqual(['db:schema://main.', '"db:note://two words".', 'db:note://person/'])
  expect(await completed('db:tab', data)).toEqual(['db:schema://main.'])
  expect(await completed('db:note://person/', data)).toEqual([])
  expect(await completed('other:', data)).toEqual([])
})
