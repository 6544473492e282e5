import { type ComponentType, useEffect, useState } from 'react'
import type { StreamdownProps } from 'streamdown'

export interface FormulaProps {
  source: string
  display: boolean
}

interface Math {
  /** Finds formulas in Markdown. */
  remark: NonNullable<StreamdownProps['remarkPlugins']>[number]
  Formula: ComponentType<FormulaProps>
}

let loaded: Math | null = null

/** What finds and sets formulas, once a text has one; null before that. */
export function useMath(text: string): Math | null {
  const wanted = text.includes('$$') || text.includes('```math')
  const [math, setMath] = useState(loaded)
  useEffect(() => {
    if (!wanted || math) return
    let here = true
    void import('@/conversation/markdown/Formula').then((module) => {
      loaded = { remark: module.remark, Formula: module.Formula }
      if (here) setMath(loaded)
    })
    return () => {
      here = false
    }
  }, [wanted, math])
  return wanted ? math : null
}

/** What sets formulas, for whoever draws one that was found; null before it has come. */
export function formula(): ComponentType<FormulaProps> | null {
  return loaded?.Formula ?? null
}
