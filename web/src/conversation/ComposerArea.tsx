import { useEffect, useRef, useSyncExternalStore } from 'react'
import type { Wishes } from '@/api/commands'
import type { Conversation, Message, Part } from '@/api/types'
import { CommandCard } from '@/conversation/composer/CommandCard'
import { Composer } from '@/conversation/composer/Composer'
import { useGiveBack } from '@/conversation/composer/giveBack'
import { type Choice, Pickers } from '@/conversation/composer/Pickers'
import { useCommands } from '@/conversation/composer/useCommands'
import { NotSent } from '@/conversation/NotSent'
import { outbox } from '@/conversation/outbox'
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
  /** The message that is being written, or the last one. */
  live: Message | undefined
  send: (parts: Part[], how?: Sending) => Promise<void>
  choice: Choice
  choose: (change: Partial<Choice>) => void
  /** The storage key of the draft. */
  draft: string
  /** Hide the composer without losing its state. */
  hidden: boolean
}

/** Return the web search set in a conversation. Null means that none is set. */
function searchOf(conversation: Conversation | null): boolean | null {
  const set = (conversation?.settings as Record<string, unknown> | undefined)?.web_search
  return typeof set === 'boolean' ? set : null
}

/** The composer with queued prompts, command output and pickers. */
export function ComposerArea({ session, busy, live, send, choice, choose, draft, hidden }: Props) {
  const state = useSyncExternalStore(session.subscribe, session.get)
  const place = { conversation: state.conversation ? session.id : null, project: choice.project ?? '' }
  const { output, clear, take, run, wishes, edits } = useCommands(session, place, choose)
  const giveBack = useGiveBack()
  const status = state.conversation?.status ?? ''
  const running = busy || status === 'running' || status === 'queued' // true even before the run's stream is open
  const area = useRef<HTMLDivElement>(null)
  const focuses = !matchMedia('(pointer: coarse)').matches
  const wasHidden = useRef(hidden)
  useEffect(() => {
    if (wasHidden.current && !hidden && focuses) area.current?.querySelector('textarea')?.focus()
    wasHidden.current = hidden
  }, [hidden, focuses])
  return (
    <div
      ref={area}
      hidden={hidden}
      inert={hidden}
      className="mx-auto w-full max-w-3xl px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] sm:px-6 sm:pb-5"
    >
      <NotSent
        session={session}
        sending={state.sending}
        edit={(entry) => {
          outbox.remove(entry.id)
          giveBack([entry.parts])
        }}
      />
      <Waiting session={session} queue={state.queue} live={live} />
      {output && <CommandCard output={output} choose={run} close={clear} />}
      <Composer
        id={draft}
        busy={running}
        send={async (parts, delivery) => {
          clear()
          await send(parts, { delivery, edits, wishes })
        }}
        command={take}
        stop={running || status === 'waiting' ? () => void session.stop().then(giveBack, notifyError) : null}
        files={
          state.conversation
            ? `/conversations/${encodeURIComponent(session.id)}/files`
            : `/projects/${encodeURIComponent(choice.project || 'default')}/files`
        }
        place={place}
        autoFocus={focuses}
        pickers={
          <Pickers
            isNew={state.conversation === null}
            conversation={state.conversation?.id ?? null}
            choice={choice}
            mode={String(state.conversation?.settings?.mode ?? '')}
            web={searchOf(state.conversation)}
            choose={choose}
          />
        }
      />
    </div>
  )
}
