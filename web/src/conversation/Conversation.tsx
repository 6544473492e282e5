import { useState } from 'react'
import { useLocation, useParams } from 'wouter'
import { Mark } from '@/app/Mark'
import { ConversationView } from '@/conversation/ConversationView'
import { sessionOf } from '@/conversation/session'
import { FirstRun } from '@/settings/FirstRun'
import { text } from '@/text'

/** The conversation in the address, or a new one. Both are one component, so that the first prompt of a new one loads nothing. */
export default function Conversation() {
  const { id } = useParams<{ id?: string }>()
  if (id === undefined) return <NewConversation />
  return <ConversationView key={id} session={sessionOf(decodeURIComponent(id))} />
}

function NewConversation() {
  const [id] = useState(() => crypto.randomUUID())
  const [, go] = useLocation()
  return <ConversationView session={sessionOf(id, true)} welcome={<Welcome />} onFirst={() => go(`/c/${id}`)} />
}

function Welcome() {
  return (
    <div className="mx-auto flex max-w-lg flex-col items-center px-6 pb-8 text-center max-md:my-auto">
      <Mark size={36} />
      <h1 className="mt-5 text-2xl font-semibold tracking-tight">{text.conversation.welcome}</h1>
      <p className="mt-2 leading-relaxed text-muted">{text.conversation.welcomeAbout}</p>
      <FirstRun />
    </div>
  )
}
