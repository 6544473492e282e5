import { describe, expect, test } from 'vitest'
import { plural } from '@/text'
import { age, dayOf, money, spent } from '@/ui/format'

const noon = new Date(2026, 10, 22, 12).getTime()

describe('format', () => {
  test('a relative time uses its largest unit and is never “0 minutes ago”', () => {
    expect([0, 59_000, 61_000, 3 * 3_600_000, 24 * 3_600_000].map((past) => age(noon - past, noon))).toEqual([
      'now',
      'now',
      '1 min. ago',
      '3 hr. ago',
      'yesterday',
    ])
  })

  test('recent days have relative headings', () => {
    const days = [0, 1, 5, 20, 80].map((past) => dayOf(noon - past * 86_400_000, noon))
    expect(days).toEqual(['Today', 'Yesterday', 'Previous 7 days', 'Previous 30 days', 'September 2026'])
  })

  test('an unknown price is never shown as zero', () => {
    expect([null, 0, 1_500_000, 2_340_000_000].map(money)).toEqual(['unknown', '$0.00', '$0.0015', '$2.34'])
  })

  test('runs without a price are counted next to the known sum', () => {
    expect([spent(4_100_000_000, 3), spent(0, 3), spent(null, 1), spent(4_100_000_000, 0)]).toEqual([
      '$4.10 + 3 unpriced',
      '3 unpriced',
      '1 unpriced',
      '$4.10',
    ])
  })

  test('plural uses the singular for one', () => {
    expect([plural(1, 'message'), plural(1234, 'message')]).toEqual(['1 message', '1,234 messages'])
  })
})
