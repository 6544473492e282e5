export default function NewConversation() {
  return <main className="m-auto p-8">moot</main>
}
