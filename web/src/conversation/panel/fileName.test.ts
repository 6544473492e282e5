import { expect, test } from 'vitest'
import { fileNameOf } from '@/conversation/panel/fileName'

test('a code block is saved under a name that fits its language', () => {
  expect(['python', 'json', '', 'dockerfile', '../etc'].map(fileNameOf)).toEqual([
    'code.py',
    'code.json',
    'code.txt',
    'Dockerfile',
    'code.txt',
  ])
})
