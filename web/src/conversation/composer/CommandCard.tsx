import { X } from 'lucide-react'
import type { CommandOutput } from '@/conversation/composer/useCommands'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { notifyError } from '@/ui/toasts'

interface Props {
  output: CommandOutput
  choose: (name: string, value: string) => Promise<void>
  close: () => void
}

/** Command output above the composer, with choices if the command asks for one. */
export function CommandCard({ output, choose, close }: Props) {
  return (
    <section
      aria-label={`/${output.command}`}
      className="mb-2 rounded-2xl border border-line bg-surface py-2 pr-2 pl-4 text-sm"
    >
      <header className="flex items-center justify-between gap-2">
        <span className="font-mono text-xs text-faint">/{output.command}</span>
        <IconButton label={text.common.close} onClick={close}>
          <X size={15} aria-hidden />
        </IconButton>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard */}
      <div role="status" tabIndex={0} className="max-h-72 overflow-y-auto pb-1">
        {output.replies.map((reply, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: replies have no id
          <div key={at}>
            {reply.text && (
              <p className="font-mono text-[0.8125rem] leading-relaxed break-words whitespace-pre-wrap">{reply.text}</p>
            )}
            {reply.title && <p className="pb-1 font-medium">{reply.title}</p>}
            {reply.choices.map((choice) => (
              <button
                key={choice.value}
                type="button"
                onClick={() => void choose(reply.command || output.command, choice.value).catch(notifyError)}
                className="flex min-h-9 w-full cursor-pointer items-baseline gap-3 rounded-lg px-2.5 py-1.5 text-left hover:bg-hover max-md:min-h-11"
              >
                <span className="min-w-0 truncate">{choice.label}</span>
                <span className="ml-auto min-w-0 truncate text-xs text-faint">{choice.about}</span>
              </button>
            ))}
          </div>
        ))}
      </div>
    </section>
  )
}
