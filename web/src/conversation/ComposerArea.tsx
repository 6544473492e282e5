import { useSyncExternalStore } from 'react'
import type { Wishes } from '@/api/commands'
import type { Part } from '@/api/types'
import { CommandCard } from '@/conversation/composer/CommandCard'
import { Composer } from '@/conversation/composer/Composer'
import { type Choice, Pickers } from '@/conversation/composer/Pickers'
import { useCommands } from '@/conversation/composer/useCommands'
import type { Session } from '@/conversation/session'
import { Waiting } from '@/conversation/Waiting'
import { notifyError } from '@/ui/toasts'

/** Options for sending a prompt. */
export interface Sending {
  /** During a run: queue the prompt, or deliver it at the next step. */
  delivery?: 'queue' | 'steer'
  /** The message to replace. */
  edits?: string | null
  wishes?: Wishes
}

interface Props {
  session: Session
  busy: boolean
  send: (parts: Part[], how?: Sending) => Promise<void>
  choice: Choice
  choose: (change: Partial<Choice>) => void
  /** The storage key of the draft. */
  draft: string
}

/** The composer with queued prompts, command output and pickers. */
export function ComposerArea({ session, busy, send, choice, choose, draft }: Props) {
  const state = useSyncExternalStore(session.subscribe, session.get)
  const { output, clear, take, run, wishes, edits } = useCommands(session, state.conversation !== null, choose)
  return (
    <div className="mx-auto w-full max-w-3xl px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] sm:px-6 sm:pb-5">
      <Waiting session={session} queue={state.queue} />
      {output && <CommandCard output={output} choose={run} close={clear} />}
      <Composer
        id={draft}
        busy={busy}
        send={async (parts, delivery) => {
          clear()
          await send(parts, { delivery, edits, wishes })
        }}
        command={take}
        stop={() => session.stop().catch(notifyError)}
        directory={state.conversation?.project ?? choice.project}
        autoFocus={!matchMedia('(pointer: coarse)').matches}
        pickers={<Pickers isNew={state.conversation === null} choice={choice} choose={choose} />}
      />
    </div>
  )
}
