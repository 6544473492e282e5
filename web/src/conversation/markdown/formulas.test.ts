import { expect, test } from 'vitest'
import { withFormulas } from '@/conversation/markdown/formulas'

test.each([
  ['the sum $a_1 + b$ is', 'the sum $$a_1 + b$$ is'],
  ['so \\(x^2\\) and \\(n\\)', 'so $$x^2$$ and $$n$$'],
  ['\\[\\frac{a}{b}\\]', '$$\n\\frac{a}{b}\n$$'],
  ['> \\[\n> x = 1\n> \\]', '> $$\n> x = 1\n> $$'],
  ['$$E = mc^2$$', '$$\nE = mc^2\n$$'],
  ['in a line $$x$$ here', 'in a line $$x$$ here'],
  ['$\\$5 + x$', '$$\\$5 + x$$'],
  ['**$x$**, ($y$), $z$.', '**$$x$$**, ($$y$$), $$z$$.'],
])('a formula is found: %s', (text, found) => {
  expect(withFormulas(text)).toBe(found)
})

test.each([
  'It costs $5 and $6.',
  'from $5–$6, or $7/$8',
  'between $5 and 6$',
  'echo $HOME and $PATH',
  'a literal \\$5 and \\$6',
  '`$x$` and `\\(y\\)` and ``a ` $z$``',
  '```sh\necho $a$ \\(b\\)\n```',
  '- ```\n  $x$\n  ```\n',
  '~~~\n$x$\n```\n$y$\n~~~',
  'see \\[the note\\](there) and \\(aside from that\\)',
  'an escaped \\\\(x\\\\)',
  '$ x $ and $\nx$',
])('it is not a formula: %s', (text) => {
  expect(withFormulas(text)).toBe(text)
})

test('a formula after a code block is found', () => {
  expect(withFormulas('```\n$a$\n```\nthen $b$')).toBe('```\n$a$\n```\nthen $$b$$')
})
