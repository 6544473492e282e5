import 'katex/dist/katex.min.css'
import rehypeKatex from 'rehype-katex'
import remarkMath from 'remark-math'
import type { StreamdownProps } from 'streamdown'

/** KaTeX without trust: no links, no images, no styles of the formula's own. */
export const math: NonNullable<NonNullable<StreamdownProps['plugins']>['math']> = {
  name: 'katex',
  type: 'math',
  remarkPlugin: [remarkMath, { singleDollarTextMath: false }],
  rehypePlugin: [rehypeKatex, { trust: false, strict: 'ignore', maxExpand: 200, maxSize: 20, throwOnError: false }],
}
