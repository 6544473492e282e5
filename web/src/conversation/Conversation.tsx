import { useParams } from 'wouter'

export default function Conversation() {
  const { id } = useParams<{ id: string }>()
  return <main className="m-auto p-8">{id}</main>
}
