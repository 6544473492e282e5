import { useChat } from '@ai-sdk/react'
import { type FormEvent, useState } from 'react'
import type { Message } from '@/api/types'
import { textOf } from '@/conversation/messages/parts'
import { Text } from '@/conversation/messages/Text'
import { closePanel } from '@/conversation/panel/content'
import type { Session } from '@/conversation/session'
import { useModels } from '@/data/settings'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { Field, INPUT } from '@/ui/Field'
import { Failed, Loading } from '@/ui/States'
import { notifyError } from '@/ui/toasts'

/** Minimum ms between two renderings of streaming text. */
const FRAME = 50

interface Asked {
  model: string
  /** The id of the message before the answer. Null if there is none. */
  prompt: string | null
}

/** Ask another model for an answer to the same prompt, and show it next to the earlier answer while it is written. */
export function AnotherModel({ session, message }: { session: Session; message: Message }) {
  const [asked, setAsked] = useState<Asked | null>(null)
  const ask = (model: string) => {
    const shown = session.get().early?.messages ?? session.chat.messages
    const at = shown.findIndex(({ id }) => id === message.id)
    setAsked({ model, prompt: shown[at - 1]?.id ?? null })
    session.regenerate(message.id, { model }).catch(notifyError)
  }
  return asked ? <Both session={session} before={message} asked={asked} /> : <Choice before={message} ask={ask} />
}

function Choice({ before, ask }: { before: Message; ask: (model: string) => void }) {
  const { data, error, refetch } = useModels()
  if (error) return <Failed error={error} retry={() => void refetch()} className="m-4" />
  if (!data) return <Loading rows={3} className="m-4" />
  const others = data.data.filter(
    ({ model, provider }) => model !== before.metadata?.model || provider !== before.metadata?.provider,
  )
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    ask(String(new FormData(event.currentTarget).get('model')))
  }
  if (!others.length) return <p className="p-4 text-sm text-muted">{text.another.none}</p>
  return (
    <form onSubmit={submit} className="space-y-4 p-4">
      <Field label={text.pickers.model} about={text.another.about}>
        {(field) => (
          <select {...field} name="model" className={INPUT}>
            {others.map(({ id }) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Button type="submit" look="primary">
        {text.another.ask}
      </Button>
    </form>
  )
}

function Both({ session, before, asked }: { session: Session; before: Message; asked: Asked }) {
  const { messages, status } = useChat<Message>({ chat: session.chat, throttle: FRAME })
  const busy = status === 'streaming' || status === 'submitted'
  const [answer, setAnswer] = useState<string | null>(null)
  const at = messages.findIndex(({ id }) => id === asked.prompt)
  const next = at >= 0 || asked.prompt === null ? messages[at + 1] : undefined
  if (answer === null && next?.role === 'assistant' && next.id !== before.id) setAnswer(next.id)
  const now = messages.find(({ id }) => id === answer)
  const writing = busy && (answer === null || messages.at(-1)?.id === answer)
  const keep = () => {
    session.switchTo(before.stored_id ?? before.id).catch(notifyError)
    closePanel()
  }
  return (
    <div className="@container min-h-0 grow overflow-y-auto">
      <div className="grid divide-line max-@md:divide-y @md:grid-cols-2 @md:divide-x">
        <Answer title={before.metadata?.model ?? text.another.before} content={textOf(before)} />
        <Answer title={asked.model} content={now ? textOf(now) : ''} streaming={writing} />
      </div>
      {!busy && before.stored_id && (
        <div className="border-t border-line p-4">
          <Button onClick={keep}>{text.another.keep}</Button>
        </div>
      )}
    </div>
  )
}

function Answer({ title, content, streaming = false }: { title: string; content: string; streaming?: boolean }) {
  return (
    <section aria-label={title} aria-busy={streaming} className="min-w-0 p-4">
      <h3 className="mb-2 truncate text-xs font-semibold text-muted">{title}</h3>
      {content ? (
        <Text text={content} streaming={streaming} />
      ) : (
        <p className="text-sm text-muted">{streaming ? text.conversation.generating : text.another.noText}</p>
      )}
    </section>
  )
}
