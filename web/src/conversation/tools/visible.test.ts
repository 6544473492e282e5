import { expect, test } from 'vitest'
import { visible } from '@/conversation/tools/visible'

test('characters that are invisible, reorder text or look like a space are escaped', () => {
  const hidden = 'a\u202eb\u200bc\u00a0d\u00ade\u3164f\ufe01g\u{e0041}h\u2028i\x1bj\u2003k\u034f'
  expect(visible(hidden)).toBe(
    'a\\u{202e}b\\u{200b}c\\u{a0}d\\u{ad}e\\u{3164}f\\u{fe01}g\\u{e0041}h\\u{2028}i\\u{1b}j\\u{2003}k\\u{34f}',
  )
})

test('ordinary text is not changed', () => {
  const plain = '日本語　です ❤️ e\u0301\t\nx'
  expect(visible(plain)).toBe(plain)
})
