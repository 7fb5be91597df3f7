defmodule Chat do
  @moduledoc "房间"

  @doc "Joins a room."
  @spec join(String.t()) :: :ok
  def join(room) do
    send(self(), {:join, room})
    :ok
  end

  defp leave(room) do
    send(self(), {:leave, room})
  end
end
