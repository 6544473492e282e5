import { type MouseEvent, type ReactNode, useMemo } from 'react'
import { Code } from '@/conversation/markdown/Code'

/** The height of a line of code in px. */
export const LINE = 20

interface Props {
  text: string
  language: string
  label: string
  /** Called with the number of a line when it is clicked. */
  choose?: (line: number) => void
  /** Content behind the lines, such as a mark. */
  children?: ReactNode
}

/** Highlighted code with line numbers. It grows with its content, so its container must scroll. */
export function NumberedCode({ text, language, label, choose, children }: Props) {
  const numbers = useMemo(() => Array.from(text.replace(/\n$/, '').split('\n'), (_, at) => at + 1).join('\n'), [text])
  const onClick =
    choose &&
    (({ clientY, currentTarget }: MouseEvent<HTMLElement>) =>
      choose(Math.floor((clientY - currentTarget.getBoundingClientRect().top) / LINE) + 1))
  return (
    <div className="relative my-3 flex w-max min-w-full font-mono text-[0.8125rem] leading-5">
      {children}
      <pre
        aria-hidden
        onClick={onClick}
        className={`sticky left-0 z-10 bg-surface pr-3 pl-4 text-right text-faint select-none ${choose ? 'cursor-pointer' : ''}`}
      >
        {numbers}
      </pre>
      <div className="relative grow">
        <Code
          text={text}
          language={language}
          label={label}
          className="max-h-none! overflow-visible! py-0! pl-1! leading-5!"
        />
      </div>
    </div>
  )
}
