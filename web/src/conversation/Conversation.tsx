import { useParams } from 'wouter'
import { ConversationView } from '@/conversation/ConversationView'
import { sessionOf } from '@/conversation/session'

export default function Conversation() {
  const { id } = useParams<{ id: string }>()
  return <ConversationView key={id} session={sessionOf(decodeURIComponent(id))} />
}
