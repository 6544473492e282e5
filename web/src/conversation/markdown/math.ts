import { useEffect, useState } from 'react'
import type { StreamdownProps } from 'streamdown'

type Math = NonNullable<NonNullable<StreamdownProps['plugins']>['math']>

let loaded: Math | null = null

/** What typesets formulas, once a text has one; null before that. */
export function useMath(text: string): Math | null {
  const wanted = loaded !== null || text.includes('$$') || text.includes('```math')
  const [math, setMath] = useState(loaded)
  useEffect(() => {
    if (!wanted || math) return
    let here = true
    void import('@/conversation/markdown/katex').then((module) => {
      loaded = module.math
      if (here) setMath(module.math)
    })
    return () => {
      here = false
    }
  }, [wanted, math])
  return wanted ? math : null
}
