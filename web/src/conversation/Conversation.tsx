import { clsx } from 'clsx'
import { useState } from 'react'
import { useLocation, useParams } from 'wouter'
import { deferred } from '@/app/deferred'
import { Mark } from '@/app/Mark'
import { ConversationView } from '@/conversation/ConversationView'
import { sessionOf } from '@/conversation/session'
import { useListChoices } from '@/data/conversations'
import { FirstRun } from '@/settings/FirstRun'
import { text } from '@/text'

const Home = deferred(() => import('@/home/Home'))

/** The conversation in the address, or a new one. Both are one component, so that the first prompt of a new one loads nothing. */
export default function Conversation() {
  const { id } = useParams<{ id?: string }>()
  if (id === undefined) return <NewConversation />
  return <ConversationView key={id} session={sessionOf(decodeURIComponent(id))} />
}

function NewConversation() {
  const [id] = useState(() => crypto.randomUUID())
  const [, go] = useLocation()
  const { data: choices } = useListChoices()
  const home = !choices || choices.agents.length > 0 // assume that there is history, so that the view rarely moves
  return (
    <ConversationView
      session={sessionOf(id, true)}
      welcome={<Welcome short={home} />}
      home={home && <Home />}
      onFirst={() => go(`/c/${id}`)}
    />
  )
}

/** The heading of a new conversation. With `short`, an overview of the archive follows. */
function Welcome({ short }: { short: boolean }) {
  return (
    <div
      className={clsx(
        'mx-auto flex max-w-lg flex-col items-center px-6 text-center',
        short ? 'pt-8 pb-5 md:pt-14' : 'pb-8 max-md:my-auto',
      )}
    >
      {short || <Mark size={36} />}
      <h1 className={clsx('text-2xl font-semibold tracking-tight', short || 'mt-5')}>{text.conversation.welcome}</h1>
      {short || <p className="mt-2 leading-relaxed text-muted">{text.conversation.welcomeAbout}</p>}
      <FirstRun />
    </div>
  )
}
