import { expect, test } from 'vitest'
import { changesHref, fileHref, inProject, languageOf, withEndings } from '@/projects/places'

test('addresses name the project, the file and the line', () => {
  expect(fileHref('default:a', 'src/a b.py', 12)).toBe('/projects/default%3Aa?path=src%2Fa+b.py&line=12')
  expect(fileHref('p')).toBe('/projects/p')
  expect(changesHref('p', 'x', true)).toBe('/projects/p?view=changes&path=x&staged=true')
})

test('paths are placed in the project, or not at all', () => {
  expect(inProject('/w/shop', '/w/shop/src', '../a.py')).toBe('a.py')
  expect(inProject('/w/shop/', '/elsewhere', '/w/shop/./src/a.py')).toBe('src/a.py')
  expect(inProject('/w/shop', '/w/shop', '../shop-two/a.py')).toBeNull()
  expect(inProject('/w/shop', '/w/shop', '.')).toBeNull()
})

test('languages are known by name or ending', () => {
  expect(['a/Dockerfile', 'x.tar.py', 'b.H', 'README'].map(languageOf)).toEqual(['docker', 'py', 'c', ''])
})

test('line endings that were not edited are kept', () => {
  expect(withEndings('a\nb\n', 'a\nc\n')).toBe('a\nc\n')
  expect(withEndings('a\r\nb\r\nc', 'a\nx\ny\nc')).toBe('a\r\nx\r\ny\r\nc')
  expect(withEndings('a\r\nb\nc\r\nd\n', 'a\nb\nnew\nd\n')).toBe('a\r\nb\nnew\r\nd\n')
  expect(withEndings('a\rb\r\n', 'a\nb\n')).toBe('a\rb\r\n')
  expect(withEndings('a\r\n', '')).toBe('')
})
