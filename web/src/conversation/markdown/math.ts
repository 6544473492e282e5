import { type ComponentType, useEffect, useState } from 'react'
import type { StreamdownProps } from 'streamdown'

export interface FormulaProps {
  source: string
  display: boolean
}

interface Math {
  /** The remark plugin that parses formulas. */
  remark: NonNullable<StreamdownProps['remarkPlugins']>[number]
  Formula: ComponentType<FormulaProps>
}

let loaded: Math | null = null

/** Load the math renderer when a text contains a formula. Return null until then. */
export function useMath(text: string): Math | null {
  const needed = text.includes('$$') || text.includes('```math')
  const [math, setMath] = useState(loaded)
  useEffect(() => {
    if (!needed || math) return
    let here = true
    const show = (module: typeof import('@/conversation/markdown/Formula')) => {
      loaded = { remark: module.remark, Formula: module.Formula }
      if (here) setMath(loaded)
    }
    void import('@/conversation/markdown/Formula').then(show, () => undefined) // without the file, the formula's source stays visible
    return () => {
      here = false
    }
  }, [needed, math])
  return needed ? math : null
}

/** Return the formula component, or null if it isn't loaded. */
export function formula(): ComponentType<FormulaProps> | null {
  return loaded?.Formula ?? null
}
