import { expect, test } from 'vitest'
import { commandLine, referenceTo } from '@/data/mcp'

test('a reference is quoted if its URI has spaces or ends like a sentence, and missing if it can’t be written', () => {
  expect(referenceTo('db', 'schema://main')).toBe('@db:schema://main')
  expect(referenceTo('db', 'note://two words')).toBe('@"db:note://two words"')
  expect(referenceTo('db', 'note://me@home')).toBe('@"db:note://me@home"')
  expect(referenceTo('db', 'note://why?')).toBe('@"db:note://why?"')
  expect(referenceTo('db', 'note://person/{name}')).toBe('@"db:note://person/{name}"')
  expect(referenceTo('db', 'note://a"b')).toBeNull()
  expect(referenceTo('db', 'note://a\nb')).toBeNull()
})

test('a command line quotes words that a shell would split or change', () => {
  expect(commandLine(['npx', '-y', '@scope/server@1.0', '/home/me'])).toBe('npx -y @scope/server@1.0 /home/me')
  expect(commandLine(['sh', '-c', 'echo $HOME', "it's", ''])).toBe(`sh -c 'echo $HOME' 'it'"'"'s' ''`)
})
